// The ladder on minnow: that it measures, and that it notices what must never happen.
#include "slipstream/bench/ladder_climb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace slip {
namespace {

using testing::HasSubstr;

class LadderClimb : public testing::Test {
 protected:
  LadderClimb()
      : source_(ModelSource::open(SLIP_SOURCE_DIR "/models/minnow").value()),
        backend_(make_backend({}).value()),
        setup_{.source = source_, .backend = backend_} {
    setup_.tests = meaningless_tests(kVocabulary);
    setup_.tests.list[0].max_tokens = kTokens;
    setup_.memory.context = setup_.tests.context();
    setup_.seconds = 0;
  }

  static constexpr int64_t kVocabulary = 8192, kTokens = 64;
  ModelSource source_;
  Backend backend_;
  LadderSetup setup_;
};

TEST_F(LadderClimb, CountsWhatStepsAndDraftsDo) {
  std::vector<std::string> done;
  setup_.done = [&](const std::string& text) { done.push_back(text); };
  const Rung plain{.name = "plain"};
  const Rung drafting{.name = "drafting", .drafts = DraftLength::fixed(2), .same_text = true};
  const Rung skipped{.name = "skipped", .skipped = "for a test"};
  const auto results = climb_ladder(setup_, {plain, skipped, drafting});
  ASSERT_TRUE(results.ok()) << results.failure().message;
  ASSERT_EQ(results.value().size(), 3u);
  EXPECT_TRUE(results.value()[1].tests.empty());
  for (const size_t i : {0, 2})
    for (const TestRun& run : results.value()[i].tests.at(0).runs) {
      EXPECT_EQ(run.tokens, kTokens - 1);  // the first needs no step
      EXPECT_EQ(run.repetitions, 1);
      EXPECT_GT(run.seconds, 0);
    }
  const TestRun& one = results.value()[0].tests[0].reported();
  const TestRun& many = results.value()[2].tests[0].reported();
  EXPECT_EQ(one.drafts.steps, one.tokens);
  EXPECT_EQ(many.tokens, many.drafts.steps + many.drafts.accepted);
  EXPECT_GT(many.drafts.accepted, 0);
  EXPECT_GT(many.bytes_per_step, one.bytes_per_step);
  EXPECT_THAT(done, testing::ElementsAre(HasSubstr("plain: "), HasSubstr("drafting: ")));
}

// A coarse cache does change the text, so a rung that claims otherwise must be found out.
TEST_F(LadderClimb, FailsLoudlyWhenTheTextChanges) {
  const Rung plain{.name = "plain"};
  const Rung liar{
      .name = "liar", .kv = {.keys = KvCodec::tq2, .values = KvCodec::tq2}, .same_text = true};
  const auto results = climb_ladder(setup_, {plain, liar});
  ASSERT_FALSE(results.ok());
  EXPECT_THAT(results.failure().message, HasSubstr("changed the text"));
  EXPECT_THAT(results.failure().message, HasSubstr("\"liar\""));
}

TEST_F(LadderClimb, AnswersTooShortToTimeGoOnBehindTheirEnd) {
  setup_.tests.stop_ids.resize(size_t(kVocabulary));
  std::iota(setup_.tests.stop_ids.begin(), setup_.tests.stop_ids.end(), 0);
  const auto results = climb_ladder(setup_, {{.name = "plain"}});
  ASSERT_TRUE(results.ok()) << results.failure().message;
  const TestResult& test = results.value()[0].tests.at(0);
  EXPECT_TRUE(test.ignores_end);
  EXPECT_EQ(test.reported().tokens, kTokens - 1);
}

TEST_F(LadderClimb, SimulatedAcceptanceDoesTheWorkAndDecidesTheRest) {
  setup_.acceptance = 0;
  const Rung drafting{.name = "drafting", .drafts = DraftLength::fixed(1)};
  const auto results = climb_ladder(setup_, {drafting});
  ASSERT_TRUE(results.ok()) << results.failure().message;
  const TestRun& run = results.value()[0].tests.at(0).reported();
  EXPECT_EQ(run.drafts.steps, run.tokens);
  EXPECT_EQ(run.drafts.accepted, 0);
  // The last token is not worth a draft: nobody would ask for what follows it.
  EXPECT_EQ(run.drafts.drafted, run.tokens - 1);
}

TEST(LadderRungs, EachKeepsWhatTheEarlierOnesSwitchedOn) {
  const ModelSource source = ModelSource::open(SLIP_SOURCE_DIR "/models/minnow").value();
  const Backend backend = make_backend({}).value();
  const std::vector<Rung> ladder = plan_ladder(source, *backend.ops, 1000).value();
  ASSERT_EQ(ladder.size(), 9u);
  for (const Rung& rung : ladder) EXPECT_EQ(rung.skipped, "") << rung.name;
  for (size_t i = 1; i < ladder.size(); ++i) {
    const WeightChoices &before = ladder[i - 1].weights, &now = ladder[i].weights;
    EXPECT_GE(now.shared_experts.has_value(), before.shared_experts.has_value());
    EXPECT_GE(now.int8_head, before.int8_head);
    EXPECT_GE(now.drafter.has_value(), before.drafter.has_value());
    EXPECT_GE(now.draft_shortlist, before.draft_shortlist);
    const bool same_numbers = now.shared_experts == before.shared_experts &&
                              now.int8_head == before.int8_head &&
                              ladder[i].activation_bytes == ladder[i - 1].activation_bytes &&
                              ladder[i].kv == ladder[i - 1].kv;
    EXPECT_EQ(ladder[i].same_text, same_numbers) << ladder[i].name;
  }
  EXPECT_EQ(ladder.back().weights.draft_shortlist, 1000);
}

}  // namespace
}  // namespace slip
