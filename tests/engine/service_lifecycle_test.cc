// Requests that are refused, cancelled, stopped for others, or given up: nothing is left behind,
// and nobody else notices.
#include <atomic>
#include <random>
#include <thread>

#include "tests/engine/service_harness.h"

namespace slip {
namespace {

std::vector<int32_t> text_of(size_t length, int32_t start = 700) {
  std::vector<int32_t> ids = prompt_ids("story");
  while (ids.size() < length) ids.push_back(ids[ids.size() * 2 / 3]);
  ids.resize(length);
  ids[0] = start;
  return ids;
}

Refusal refused(Service& service, Request request) {
  auto taken = service.submit(std::move(request), std::make_shared<Listener>());
  EXPECT_EQ(taken.index(), 1u);
  return taken.index() == 1 ? std::get<Refusal>(taken) : Refusal{};
}

class ServiceLifecycle : public ::testing::Test {
 protected:
  // Pages for one whole context: four requests of a third of it each do not fit.
  LoadedModel model_{
      minnow_folder(),
      fast_backends().front(),
      {.context = 512, .max_drafts = 3, .sequences = 4, .checkpoints = 4, .pages = 8}};
  const Tokenizer tokenizer_ = Tokenizer::load(minnow_folder()).value();
};

TEST_F(ServiceLifecycle, PreemptedRequestsGiveTheSameAnswers) {
  constexpr int kRequests = 8;
  const auto request = [](int which) {
    const std::vector<int32_t> prompt = text_of(size_t(40 + 11 * which), 700 + which);
    return which % 2 ? sampled(prompt, 120, uint64_t(which)) : greedy(prompt, 120);
  };
  for (const int64_t drafts : {0, 3}) {
    std::vector<std::vector<int32_t>> alone;
    const ServiceOptions options{.max_drafts = drafts, .always_draft = true};
    {
      Service service(model_.engine(), tokenizer_, options);
      for (int i = 0; i < kRequests; ++i) alone.push_back(answer(service, request(i))->ids);
      EXPECT_EQ(service.stats().preemptions, 0);
    }
    Service service(model_.engine(), tokenizer_, options);
    std::vector<Submitted> submitted;
    for (int i = 0; i < kRequests; ++i) submitted.push_back(submit(service, request(i)));
    for (int i = 0; i < kRequests; ++i) {
      submitted[size_t(i)].listener->wait();
      EXPECT_EQ(submitted[size_t(i)].listener->ids, alone[size_t(i)]) << i;
      EXPECT_EQ(submitted[size_t(i)].listener->summary.finish, FinishReason::max_tokens);
    }
    EXPECT_TRUE(service.drain(5));
    EXPECT_GT(service.stats().preemptions, 0) << "the test is meant to run out of pages";
    expect_all_free(service.stats());
  }
}

TEST_F(ServiceLifecycle, OneThatNeedsAllPagesEndsAmongOthers) {
  Service service(model_.engine(), tokenizer_, {});
  const auto others = [&](int first) {
    std::vector<Submitted> submitted;
    for (int i = 0; i < 4; ++i)
      submitted.push_back(submit(service, greedy(text_of(100, first + i), 60)));
    return submitted;
  };
  std::vector<Submitted> all = others(700);
  all.push_back(submit(service, greedy(text_of(500, 800), -1)));
  for (Submitted& each : others(900)) all.push_back(std::move(each));
  for (const Submitted& each : all) {
    each.listener->wait();
    EXPECT_FALSE(each.listener->summary.failure);
    EXPECT_NE(each.listener->summary.finish, FinishReason::cancelled);
  }
  EXPECT_EQ(all[4].listener->ids.size(), 13u) << "up to the end of the context";
  EXPECT_TRUE(service.drain(5));
  expect_all_free(service.stats());
}

TEST_F(ServiceLifecycle, CancellingEndsARequestWithinAStep) {
  Service service(model_.engine(), tokenizer_, {.max_drafts = 3});
  for (const int64_t after : {1, 5}) {
    auto listener = std::make_shared<Listener>();
    std::atomic<uint64_t> id{0};
    listener->on_each = [&](const TokenEvent&) {
      while (id == 0) std::this_thread::yield();
      if (int64_t(listener->ids.size()) == after) service.cancel(RequestId(id.load()));
    };
    Request request = greedy(text_of(100), -1);
    id = uint64_t(std::get<RequestId>(service.submit(std::move(request), listener)));
    listener->wait();
    EXPECT_EQ(listener->summary.finish, FinishReason::cancelled);
    EXPECT_FALSE(listener->summary.failure);
    EXPECT_LE(int64_t(listener->ids.size()), after + 3) << "drafts of the same step at most";
  }
  service.cancel(RequestId(12345));  // unknown: ignored
  EXPECT_TRUE(service.drain(5));
  expect_all_free(service.stats());
}

TEST_F(ServiceLifecycle, WaitingRequestsCanBeCancelled) {
  Service service(model_.engine(), tokenizer_, {});
  std::vector<Submitted> running;
  for (int i = 0; i < 4; ++i) running.push_back(submit(service, greedy(text_of(100, 700 + i), 60)));
  const Submitted waiting = submit(service, greedy(text_of(100, 900), 60));
  service.cancel(waiting.id);
  waiting.listener->wait();
  EXPECT_EQ(waiting.listener->summary.finish, FinishReason::cancelled);
  EXPECT_TRUE(waiting.listener->ids.empty());
  for (const Submitted& each : running) {
    each.listener->wait();
    EXPECT_EQ(each.listener->ids.size(), 60u);
  }
}

TEST_F(ServiceLifecycle, RefusesWhatItCannotTake) {
  Service service(model_.engine(), tokenizer_, {});
  EXPECT_EQ(refused(service, greedy({}, 4)).kind, Refusal::Kind::invalid);
  EXPECT_EQ(refused(service, greedy({5, -1}, 4)).kind, Refusal::Kind::invalid);
  EXPECT_EQ(refused(service, greedy({5, 1 << 20}, 4)).kind, Refusal::Kind::invalid);
  const Refusal too_long = refused(service, greedy(text_of(513), 4));
  EXPECT_EQ(too_long.kind, Refusal::Kind::too_long);
  EXPECT_NE(too_long.message.find("513"), std::string::npos);
  // The longest that fits: one token comes of it, which needs no place.
  const auto full = answer(service, greedy(text_of(512), -1));
  EXPECT_EQ(full->ids.size(), 1u);
  EXPECT_EQ(full->summary.finish, FinishReason::context_full);
}

TEST_F(ServiceLifecycle, AnAnswerOfNoTokensTakesNothing) {
  Service service(model_.engine(), tokenizer_, {.max_drafts = 3});
  const Submitted other = submit(service, greedy(text_of(60), 40));
  const auto none = answer(service, greedy(text_of(60), 0));
  EXPECT_EQ(none->summary.finish, FinishReason::max_tokens);
  EXPECT_TRUE(none->ids.empty());
  EXPECT_TRUE(none->prompt_steps.empty());
  other.listener->wait();
  EXPECT_EQ(other.listener->ids.size(), 40u);
  EXPECT_TRUE(service.drain(5));
  expect_all_free(service.stats());
}

TEST_F(ServiceLifecycle, AFullQueueRefuses) {
  Service service(model_.engine(), tokenizer_, {.max_queue = 3});
  std::vector<Submitted> submitted;
  for (int i = 0; i < 7; ++i)
    submitted.push_back(submit(service, greedy(text_of(60, 700 + i), 80)));
  EXPECT_EQ(refused(service, greedy(text_of(60), 8)).kind, Refusal::Kind::queue_full);
  for (const Submitted& each : submitted) each.listener->wait();
  while (service.stats().running > 0) std::this_thread::yield();
  EXPECT_EQ(answer(service, greedy(text_of(60), 8))->ids.size(), 8u) << "there is room again";
}

TEST_F(ServiceLifecycle, DrainingFinishesWhatWasBegunAndTakesNoMore) {
  Service service(model_.engine(), tokenizer_, {});
  std::vector<Submitted> submitted;
  for (int i = 0; i < 6; ++i)
    submitted.push_back(submit(service, greedy(text_of(50, 700 + i), 40)));
  EXPECT_FALSE(service.drain(0));
  EXPECT_EQ(refused(service, greedy(text_of(60), 8)).kind, Refusal::Kind::stopping);
  EXPECT_TRUE(service.drain(60));
  for (const Submitted& each : submitted) EXPECT_EQ(each.listener->ids.size(), 40u);
}

TEST_F(ServiceLifecycle, EndingTheServiceEndsItsRequests) {
  std::vector<Submitted> submitted;
  {
    Service service(model_.engine(), tokenizer_, {});
    for (int i = 0; i < 6; ++i)
      submitted.push_back(submit(service, greedy(text_of(50, 700 + i), -1)));
  }
  for (const Submitted& each : submitted) {
    EXPECT_EQ(each.listener->finishes, 1);
    EXPECT_EQ(each.listener->summary.finish, FinishReason::cancelled);
  }
  Service again(model_.engine(), tokenizer_, {});
  expect_all_free(again.stats());
  EXPECT_EQ(answer(again, greedy(text_of(50), 5))->ids.size(), 5u);
}

TEST_F(ServiceLifecycle, AListenerThatThrowsEndsItsRequestAndNothingElse) {
  Service service(model_.engine(), tokenizer_, {});
  const Submitted bad = submit(service, greedy(text_of(50), 20),
                               [](const TokenEvent&) { throw std::runtime_error("no more"); });
  bad.listener->wait();
  ASSERT_TRUE(bad.listener->summary.failure);
  EXPECT_NE(bad.listener->summary.failure->message.find("no more"), std::string::npos);
  EXPECT_EQ(answer(service, greedy(text_of(50), 5))->ids.size(), 5u);
  EXPECT_TRUE(service.drain(5));
  expect_all_free(service.stats());
}

TEST_F(ServiceLifecycle, NorDoesOneThatThrowsWhileItsPromptIsRead) {
  struct Bad : Listener {
    void on_prompt(int64_t, int64_t) override { throw std::runtime_error("no prompt"); }
  };
  Service service(model_.engine(), tokenizer_, {});
  std::atomic<bool> talks{false};
  const Submitted other =
      submit(service, greedy(text_of(20, 704), 60), [&](const TokenEvent&) { talks = true; });
  while (!talks) std::this_thread::yield();
  const auto bad = std::make_shared<Bad>();
  ASSERT_EQ(service.submit(greedy(text_of(50), 20), bad).index(), 0u);
  bad->wait();
  ASSERT_TRUE(bad->summary.failure);
  EXPECT_NE(bad->summary.failure->message.find("no prompt"), std::string::npos);
  other.listener->wait();
  EXPECT_FALSE(other.listener->summary.failure);
  EXPECT_EQ(other.listener->ids.size(), 60u);
  EXPECT_TRUE(service.drain(5));
  expect_all_free(service.stats());
}

TEST_F(ServiceLifecycle, ShortPromptsDoNotWaitForALongOne) {
  Service service(model_.engine(), tokenizer_, {.chunk_seconds = 1e-6});
  std::atomic<bool> talks{false};
  const Submitted talking =
      submit(service, greedy(text_of(20, 701), 120), [&](const TokenEvent&) { talks = true; });
  while (!talks) std::this_thread::yield();
  const Submitted long_one = submit(service, greedy(text_of(250, 702), 4));
  const Submitted short_one = submit(service, greedy(text_of(20, 703), 4));
  short_one.listener->wait();
  const bool done = long_one.listener->finished();
  long_one.listener->wait();
  EXPECT_FALSE(done) << "the short prompt was first, though it came second";
  EXPECT_GT(long_one.listener->prompt_steps.size(), 3u) << "the long one came in pieces";
  talking.listener->wait();
}

TEST_F(ServiceLifecycle, NewcomersDoNotKeepALongPromptWaiting) {
  Service service(model_.engine(), tokenizer_, {.chunk_seconds = 1e-6});
  std::atomic<bool> talks{false};
  const Submitted talking =
      submit(service, greedy(text_of(20, 701), 300), [&](const TokenEvent&) { talks = true; });
  while (!talks) std::this_thread::yield();
  const Submitted long_one = submit(service, greedy(text_of(150, 702), 1));
  // Each fills a step's room for prompts, and the next comes as soon as it is done.
  std::atomic<int> newcomers{0};
  std::function<void()> next = [&] {
    if (++newcomers > 100 || long_one.listener->finished()) return;
    Request request = greedy(text_of(16, 703 + newcomers), 1);
    request.reuse_prefix = false;
    submit(service, std::move(request), [&](const TokenEvent&) { next(); });
  };
  next();
  long_one.listener->wait();
  EXPECT_LT(newcomers, 40);
  EXPECT_FALSE(talking.listener->finished()) << "it had to wait until nobody talked any more";
  service.cancel(talking.id);
  EXPECT_TRUE(service.drain(5));
}

TEST_F(ServiceLifecycle, IdleIsSilent) {
  Service service(model_.engine(), tokenizer_, {});
  answer(service, greedy(text_of(50), 5));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(service.silence(), 0);
}

// Clients come and go at random, some with memories that others share.
TEST_F(ServiceLifecycle, ManyRequestsWithRandomAbortsLeaveNothing) {
  constexpr int kRequests = 500;
  Service service(model_.engine(), tokenizer_, {.max_queue = kRequests, .max_drafts = 3});
  std::mt19937 random(7);
  const auto below = [&](int limit) { return int(random() % unsigned(limit)); };
  std::vector<Submitted> submitted;
  for (int i = 0; i < kRequests; ++i) {
    Request request =
        sampled(text_of(size_t(5 + below(150)), 700 + below(4)), 1 + below(24), uint64_t(i));
    request.message_ends = {int64_t(request.prompt.size()) / 2};
    request.salt = cat(below(2));
    submitted.push_back(submit(service, std::move(request)));
    if (below(3) == 0) service.cancel(submitted[size_t(below(i + 1))].id);
    if (below(20) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(below(8)));
  }
  for (const Submitted& each : submitted) {
    each.listener->wait();
    EXPECT_EQ(each.listener->finishes, 1);
    EXPECT_FALSE(each.listener->summary.failure);
  }
  EXPECT_TRUE(service.drain(5));
  expect_all_free(service.stats());
}

}  // namespace
}  // namespace slip
