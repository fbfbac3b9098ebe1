// Drafts that nobody looks at between one and the next: the same as one by one, on every backend,
// and in sessions and services on one that is not in the host's memory.
#include "kernels/cpu/cpu_ops_impl.h"
#include "tests/engine/elsewhere.h"
#include "tests/engine/service_harness.h"
#include "tests/golden/tiny_folder.h"

namespace slip {
namespace {

Backend far_backend() {
  return {"cpu_far", [](ThreadPool& pool) -> std::unique_ptr<Ops> {
            return std::make_unique<Elsewhere<CpuOps>>(pool,
                                                       loops_for(available_isas().front(), 2));
          }};
}

// The CPU's fastest, the same from afar, and the GPU's if there is one.
std::vector<Backend> backends() {
  const std::vector<Backend> fast = fast_backends();
  std::vector<Backend> all(fast.begin() + int64_t(cpu_backends().size()), fast.end());
  all.push_back(fast.front());
  all.push_back(far_backend());
  return all;
}

class DraftsAtOnce : public ::testing::TestWithParam<Backend> {
 protected:
  // The same text twice: drafted one by one and at once.
  static void expect_the_same(LoadedModel& model, std::span<const int32_t> prompt) {
    constexpr int64_t kDrafts = 4;
    Session one_by_one(model.engine()), at_once(model.engine());
    ASSERT_TRUE(one_by_one.feed(prompt).ok());
    std::vector<int32_t> ids = {one_by_one.choice().peak().id};
    std::vector<Peak> right;
    for (int64_t i = 0; i < kDrafts; ++i) {
      right.push_back(one_by_one.draft(ids)->peak());
      ids.push_back(right.back().id);
    }
    // Three times: a backend that records does so the second time.
    for (int round = 0; round < 3; ++round) {
      at_once.clear();
      ASSERT_TRUE(at_once.feed(prompt).ok());
      ASSERT_TRUE(at_once.reserve(kDrafts));
      const DraftPasses::Question question{.sequence = at_once.sequence(), .id = ids.front()};
      DraftPasses& passes = at_once.draft_passes();
      passes.first_rounds({&question, 1}, kDrafts);
      for (size_t i = 0; i < right.size(); ++i) {
        const Peak draft = passes.peak(int64_t(i), 0);
        EXPECT_EQ(draft.id, right[i].id) << "draft " << i;
        EXPECT_EQ(draft.value, right[i].value) << "draft " << i;
        EXPECT_EQ(draft.runner_up, right[i].runner_up) << "draft " << i;
      }
    }
  }
};

TEST_P(DraftsAtOnce, AreThoseOneByOne) {
  LoadedModel model(minnow_folder(), GetParam(), {.context = 512, .max_drafts = 4, .sequences = 2});
  expect_the_same(model, prompt_ids("story"));
}

TEST_P(DraftsAtOnce, AreThoseOneByOneOfAShortlist) {
  LoadedModel model(
      minnow_folder(), GetParam(),
      {.context = 512, .max_drafts = 4, .sequences = 2, .weights = {.draft_shortlist = 700}});
  expect_the_same(model, prompt_ids("story"));
}

TEST_P(DraftsAtOnce, AreThoseOneByOneOfADrafterWithoutKeys) {
  for (const std::string drafter : {"gemma4_e_assistant", "gemma4_e_assistant_dense"}) {
    if (!has_tiny("gemma4_e") || !has_tiny(drafter)) GTEST_SKIP() << kTinyAbsent;
    LoadedModel model(
        tiny_folder("gemma4_e"), GetParam(),
        {.context = 512, .max_drafts = 4, .sequences = 2, .drafter = tiny_folder(drafter)});
    expect_the_same(model, std::vector<int32_t>{2, 7, 30, 11, 5});
  }
}

TEST_P(DraftsAtOnce, ChangeNoText) {
  LoadedModel model(minnow_folder(), GetParam(), {.context = 512, .max_drafts = 4});
  const Tokenizer tokenizer = Tokenizer::load(minnow_folder()).value();
  Session session(model.engine());
  GenerateRequest request;
  request.prompt = prompt_ids("story");
  request.max_tokens = 80;
  request.sampling.temperature = 0;
  // Among them a token that would often be the best: drafts of it decide nothing.
  request.sampling.logit_bias = {{300, -100.0f}};
  const std::vector<int32_t> right = generate(session, &tokenizer, request, {}).value().ids;
  for (const bool automatic : {false, true}) {
    SoloDrafting drafting(automatic ? DraftLength::automatic(4) : DraftLength::fixed(3));
    session.clear();
    request.drafts = &drafting;
    const GenerateResult drafted = generate(session, &tokenizer, request, {}).value();
    EXPECT_EQ(drafted.ids, right) << (automatic ? "as they pay" : "three");
    EXPECT_GT(drafted.drafts.accepted, 0);
    EXPECT_GE(drafted.drafts.made, drafted.drafts.drafted);
  }
}

TEST_P(DraftsAtOnce, ChangeNoTextOfMany) {
  LoadedModel model(minnow_folder(), GetParam(), {.context = 512, .max_drafts = 4, .sequences = 4});
  const Tokenizer tokenizer = Tokenizer::load(minnow_folder()).value();
  const std::vector<std::string> names = prompt_names();
  const auto run = [&](const ServiceOptions& options) {
    Service service(model.engine(), tokenizer, options);
    std::vector<Submitted> submitted;
    for (size_t i = 0; i < 6; ++i) {
      std::vector<int32_t> prompt = prompt_ids(names[i % names.size()]);
      prompt.resize(std::min<size_t>(prompt.size(), 100 + i));
      Request request = greedy(prompt, int64_t(20 + 5 * i));
      request.reuse_prefix = false;
      submitted.push_back(submit(service, std::move(request)));
    }
    std::vector<std::vector<int32_t>> texts;
    for (const Submitted& each : submitted) {
      each.listener->wait();
      texts.push_back(each.listener->ids);
    }
    EXPECT_TRUE(service.drain(5));
    if (options.max_drafts > 0) {
      EXPECT_GT(service.stats().accepted_tokens, 20);
    }
    return texts;
  };
  const std::vector<std::vector<int32_t>> right = run({});
  EXPECT_EQ(run({.max_drafts = 3, .always_draft = true}), right);
  EXPECT_EQ(run({.max_drafts = 4}), right);
}

// Rows to verify are for 16 drafts in all, and 16 requests are answered.
TEST(DraftsOfMany, AreSharedByAll) {
  constexpr int64_t kRequests = 16;
  LoadedModel model(minnow_folder(), far_backend(),
                    {.context = 256, .max_rows = 16, .max_drafts = 4, .sequences = kRequests});
  const Tokenizer tokenizer = Tokenizer::load(minnow_folder()).value();
  Service service(model.engine(), tokenizer, {.max_drafts = 4, .always_draft = true});
  std::vector<int32_t> prompt = prompt_ids("story");
  prompt.resize(std::min<size_t>(prompt.size(), 8));
  std::vector<Submitted> submitted;
  for (int64_t i = 0; i < kRequests; ++i) {
    Request request = greedy(prompt, 150);
    request.reuse_prefix = false;
    submitted.push_back(submit(service, std::move(request)));
  }
  int64_t fewest = INT64_MAX, most = 0;
  for (const Submitted& each : submitted) {
    each.listener->wait();
    const int64_t steps = each.listener->summary.drafts.steps;
    fewest = std::min(fewest, steps);
    most = std::max(most, steps);
  }
  EXPECT_LE(most, fewest * 5 / 4) << "steps for the same text";
}

// Beside a long answer, many that end after a token or two.
TEST(DraftsOfMany, WhoIsAboutToEndLeavesTheOthersTheirs) {
  LoadedModel model(minnow_folder(), far_backend(),
                    {.context = 256, .max_drafts = 4, .sequences = 2});
  const Tokenizer tokenizer = Tokenizer::load(minnow_folder()).value();
  Service service(model.engine(), tokenizer, {.max_drafts = 4, .always_draft = true});
  std::vector<int32_t> prompt = prompt_ids("story");
  prompt.resize(std::min<size_t>(prompt.size(), 40));
  const Submitted longer = submit(service, greedy(prompt, 60));
  std::vector<Submitted> brief;
  for (int64_t i = 0; i < 60; ++i) brief.push_back(submit(service, greedy(prompt, 3)));
  longer.listener->wait();
  const DraftCounts& drafts = longer.listener->summary.drafts;
  EXPECT_GE(drafts.drafted, 3 * (drafts.steps - 2)) << "of " << drafts.steps << " steps";
  for (const Submitted& each : brief) {
    each.listener->wait();
    EXPECT_EQ(each.listener->ids.size(), 3u);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, DraftsAtOnce, ::testing::ValuesIn(backends()),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace slip
