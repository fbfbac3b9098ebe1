// Log probabilities of a prompt: the numbers, and that everything else is as without them.
#include <atomic>
#include <thread>

#include "tests/engine/cut_sensitive.h"
#include "tests/engine/service_harness.h"

namespace slip {
namespace {

// Writes down what it hears of its prompt.
class ScoreListener : public Listener {
 public:
  std::function<void()> on_each_score;

  void on_prompt(int64_t done, int64_t total) override {
    if (!prompt_steps.empty() && done < prompt_steps.back() && int64_t(scores.size()) < total - 1)
      was_stopped = true;
    Listener::on_prompt(done, total);
  }
  void on_prompt_token(const TokenEvent& event) override {
    EXPECT_TRUE(ids.empty()) << "the prompt comes first";
    EXPECT_TRUE(event.text.empty());
    scores.push_back(event);
    if (on_each_score) on_each_score();
  }

  std::vector<float> logprobs() const {
    std::vector<float> all;
    for (const TokenEvent& event : scores) all.push_back(event.logprob);
    return all;
  }

  std::vector<TokenEvent> scores;
  bool was_stopped = false;  // before it had heard all of them
};

Request scored(Request request, int top = 0) {
  request.score_prompt = true;
  request.top_logprobs = top;
  return request;
}

std::vector<int32_t> text(size_t length, int32_t start = 700) {
  std::vector<int32_t> ids = prompt_ids("docs_page");
  while (ids.size() < length) ids.push_back(ids[ids.size() / 3]);
  ids.resize(length);
  ids[0] = start;
  return ids;
}

std::shared_ptr<ScoreListener> begin(Service& service, Request request) {
  const auto listener = std::make_shared<ScoreListener>();
  EXPECT_EQ(service.submit(std::move(request), listener).index(), 0u);
  return listener;
}

std::shared_ptr<ScoreListener> score(Service& service, Request request) {
  const auto listener = begin(service, std::move(request));
  listener->wait();
  return listener;
}

class ServiceScore : public ::testing::Test {
 protected:
  // Every token against the logits of the position before it, all from one pass of a session.
  void expect_right(const std::vector<int32_t>& ids, const ScoreListener& heard) {
    ASSERT_EQ(heard.scores.size(), ids.size() - 1);
    const LogitRows rows =
        LoadedModel(minnow_folder(), fast_backends().front(), {.context = 512}).logits(ids);
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const TokenEvent& event = heard.scores[i];
      const std::span<const float> logits = rows.row(int64_t(i));
      const double log_sum = log_sum_exp(logits);
      ASSERT_EQ(event.id, ids[i + 1]);
      EXPECT_NEAR(event.logprob, double(logits[size_t(event.id)]) - log_sum, 1e-4) << i;
      ASSERT_EQ(event.top.size(), 3u);
      EXPECT_EQ(event.top[0].id, argmax(logits));
      for (const TokenLogprob& other : event.top)
        EXPECT_NEAR(other.logprob, double(logits[size_t(other.id)]) - log_sum, 1e-4) << i;
    }
  }

  LoadedModel model_{minnow_folder(),
                     fast_backends().front(),
                     {.context = 512, .max_drafts = 3, .sequences = 4, .checkpoints = 8}};
  const Tokenizer tokenizer_ = Tokenizer::load(minnow_folder()).value();
  const ServiceOptions options_{.max_drafts = 3, .always_draft = true};
};

TEST_F(ServiceScore, EveryTokenOfThePromptButTheFirst) {
  Service service(model_.engine(), tokenizer_, options_);
  const std::vector<int32_t> prompt = text(200);
  const auto asked = [&] {
    Request request = greedy(prompt, 30);
    request.message_ends = {100};
    return request;
  };
  const auto plain = answer(service, asked());
  EXPECT_EQ(answer(service, asked())->summary.cached_tokens, 100);
  const auto heard = score(service, scored(asked(), 3));
  expect_right(prompt, *heard);
  EXPECT_EQ(heard->ids, plain->ids);
  EXPECT_EQ(heard->events[0].top.size(), 3u);
  EXPECT_EQ(heard->summary.cached_tokens, 0) << "it was remembered, without logits";
  EXPECT_TRUE(service.drain(5));
  EXPECT_GT(service.stats().accepted_tokens, 0) << "drafts as usual";
  expect_all_free(service.stats());
}

TEST_F(ServiceScore, NothingElseNeedsToBeWanted) {
  Service service(model_.engine(), tokenizer_, options_);
  const std::vector<int32_t> prompt = text(100);
  const auto heard = score(service, scored(greedy(prompt, 0), 3));
  expect_right(prompt, *heard);
  EXPECT_TRUE(heard->ids.empty());
  EXPECT_EQ(heard->summary.finish, FinishReason::max_tokens);
  EXPECT_EQ(heard->finishes, 1);
  EXPECT_GT(heard->summary.prompt_seconds, 0);
  const auto lonely = score(service, scored(greedy({700}, 0)));
  EXPECT_TRUE(lonely->scores.empty()) << "the first token follows nothing";
  EXPECT_EQ(score(service, scored(greedy({700}, 4)))->ids.size(), 4u);
  // What was computed can be used by others.
  EXPECT_EQ(answer(service, greedy(prompt, 5))->summary.cached_tokens, 99);
}

TEST_F(ServiceScore, TogetherIsLikeAlone) {
  Service service(model_.engine(), tokenizer_, options_);
  const auto asked = [](int which) {
    return scored(greedy(text(size_t(40 + 17 * which), 700 + which), 20));
  };
  std::vector<std::shared_ptr<ScoreListener>> alone, together;
  for (int i = 0; i < 8; ++i) alone.push_back(score(service, asked(i)));
  const Submitted plain = submit(service, greedy(text(90, 600), 60));
  for (int i = 0; i < 8; ++i) together.push_back(begin(service, asked(i)));
  for (size_t i = 0; i < 8; ++i) {
    together[i]->wait();
    EXPECT_EQ(together[i]->logprobs(), alone[i]->logprobs()) << i;
    EXPECT_EQ(together[i]->ids, alone[i]->ids) << i;
  }
  plain.listener->wait();
  EXPECT_EQ(plain.listener->ids, answer(service, greedy(text(90, 600), 60))->ids);
}

TEST_F(ServiceScore, ComesInSmallSteps) {
  Service service(model_.engine(), tokenizer_, options_);
  const auto heard = score(service, scored(greedy(text(200), 0)));
  for (size_t i = 1; i < heard->prompt_steps.size(); ++i)
    EXPECT_LE(heard->prompt_steps[i] - heard->prompt_steps[i - 1], 32);
}

TEST_F(ServiceScore, CanBeCancelledBetweenItsSteps) {
  Service service(model_.engine(), tokenizer_, options_);
  const auto listener = std::make_shared<ScoreListener>();
  std::atomic<uint64_t> id{0};
  listener->on_each_score = [&] {
    while (id == 0) std::this_thread::yield();
    service.cancel(RequestId(id.load()));
  };
  id = uint64_t(std::get<RequestId>(service.submit(scored(greedy(text(400), 5)), listener)));
  listener->wait();
  EXPECT_EQ(listener->summary.finish, FinishReason::cancelled);
  EXPECT_LE(listener->scores.size(), 32u);
  EXPECT_TRUE(service.drain(5));
  expect_all_free(service.stats());
}

TEST_F(ServiceScore, TellsTheStopToken) {
  Service service(model_.engine(), tokenizer_, options_);
  const std::vector<int32_t> prompt = text(60);
  const auto whole = score(service, scored(greedy(prompt, 1), 2));
  EXPECT_FALSE(whole->summary.stop_token);
  Request request = scored(greedy(prompt, 5), 2);
  request.stop_ids = whole->ids;
  const auto stopped = score(service, std::move(request));
  EXPECT_TRUE(stopped->ids.empty());
  ASSERT_TRUE(stopped->summary.stop_token);
  EXPECT_EQ(stopped->summary.stop_token->id, whole->ids[0]);
  EXPECT_EQ(stopped->summary.stop_token->logprob, whole->events[0].logprob);
  EXPECT_EQ(stopped->summary.stop_token->top.size(), 2u);
}

// One sequence and no drafts: a step has a single row of logits.
TEST(ServiceScoreAlone, GoesOnWithASingleRow) {
  LoadedModel model(minnow_folder(), fast_backends().front(), {.context = 128, .max_rows = 1});
  const Tokenizer tokenizer = Tokenizer::load(minnow_folder()).value();
  Service service(model.engine(), tokenizer, {});
  ASSERT_EQ(model.engine().logit_rows(), 1);
  const auto heard = score(service, scored(greedy(text(50), 5)));
  EXPECT_EQ(heard->scores.size(), 49u);
  EXPECT_EQ(heard->ids, answer(service, greedy(text(50), 5))->ids);
}

TEST(ServiceScoreAlone, StoppedHalfwayGoesOnWhereItWas) {
  LoadedModel model(minnow_folder(), fast_backends().front(),
                    {.context = 512, .max_rows = 4, .sequences = 2, .pages = 9});
  const Tokenizer tokenizer = Tokenizer::load(minnow_folder()).value();
  Service service(model.engine(), tokenizer, {});
  const auto young = [&] { return scored(greedy(text(380), 5)); };
  const auto alone = score(service, young());
  EXPECT_FALSE(alone->was_stopped);
  // It grows by two pages, of which one is free, while three rows of the other are scored in a
  // step.
  std::shared_ptr<ScoreListener> heard;
  const Submitted old = submit(service, greedy(text(126, 600), 120), [&](const TokenEvent&) {
    if (!heard) heard = begin(service, young());
  });
  old.listener->wait();
  heard->wait();
  EXPECT_TRUE(heard->was_stopped);
  EXPECT_EQ(heard->logprobs(), alone->logprobs());
  EXPECT_EQ(heard->ids, alone->ids);
}

// Where numbers depend on how a prompt is cut, too.
class ServiceScoreCut : public ::testing::TestWithParam<Backend> {
 protected:
  static constexpr int64_t kDrafts = 3;

  static LoadedModel load(std::optional<int64_t> pages = {}) {
    return LoadedModel(minnow_folder(), GetParam(),
                       {.context = 512,
                        .max_rows = 96 - kDraftingSequences * kDrafts,
                        .max_drafts = kDrafts,
                        .sequences = 6,
                        .checkpoints = 12,
                        .pages = pages});
  }
  const Tokenizer tokenizer_ = Tokenizer::load(minnow_folder()).value();
  const ServiceOptions options_{.max_drafts = kDrafts, .always_draft = true};

  static Request request(std::vector<int32_t> prompt, bool reuse) {
    Request made = greedy(std::move(prompt), 40);
    made.message_ends = {80, 150};
    made.reuse_prefix = reuse;
    made.top_logprobs = 0;
    return made;
  }
  static std::vector<float> answered(const Listener& heard) {
    std::vector<float> all;
    for (const TokenEvent& event : heard.events) all.push_back(event.logprob);
    return all;
  }
};

TEST_P(ServiceScoreCut, TheAnswerIsTheSameBitForBit) {
  LoadedModel model = load();
  Service service(model.engine(), tokenizer_, options_);
  const std::vector<int32_t> prompt = text(200);
  const auto plain = answer(service, request(prompt, false));
  const auto heard = score(service, scored(request(prompt, false)));
  EXPECT_EQ(heard->scores.size(), 199u);
  EXPECT_EQ(heard->ids, plain->ids);
  EXPECT_EQ(answered(*heard), answered(*plain));
}

TEST_P(ServiceScoreCut, WhatItLeavesIsThatOfAnyPrompt) {
  LoadedModel model = load();
  Service service(model.engine(), tokenizer_, options_);
  const std::vector<int32_t> prompt = text(200), longer = text(220);
  const auto cold = answer(service, request(longer, false));
  score(service, scored(request(prompt, true)));
  const auto hit = answer(service, request(longer, true));
  EXPECT_GE(hit->summary.cached_tokens, 150);
  EXPECT_EQ(answered(*hit), answered(*cold));
}

TEST_P(ServiceScoreCut, StoppedAndStartedAgainIsToldOnce) {
  constexpr int kRequests = 9;
  const auto asked = [](int which) {
    Request made = scored(request(text(size_t(60 + 37 * which), 700 + which), false), which % 3);
    made.max_tokens = 90;
    return made;
  };
  LoadedModel model = load(9);  // pages for one whole context, and no more
  Service service(model.engine(), tokenizer_, options_);
  std::vector<std::shared_ptr<ScoreListener>> alone, together;
  for (int i = 0; i < kRequests; ++i) alone.push_back(score(service, asked(i)));
  EXPECT_EQ(service.stats().preemptions, 0);
  for (int i = 0; i < kRequests; ++i) together.push_back(begin(service, asked(i)));
  for (size_t i = 0; i < kRequests; ++i) {
    together[i]->wait();
    EXPECT_EQ(together[i]->logprobs(), alone[i]->logprobs()) << i;
    EXPECT_EQ(together[i]->ids, alone[i]->ids) << i;
    EXPECT_EQ(answered(*together[i]), answered(*alone[i])) << i;
  }
  EXPECT_TRUE(service.drain(5));
  EXPECT_GT(service.stats().preemptions, 0) << "the test is meant to run out of pages";
  expect_all_free(service.stats());
}

INSTANTIATE_TEST_SUITE_P(All, ServiceScoreCut,
                         ::testing::Values(fast_backends().front(), cut_sensitive()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace slip
