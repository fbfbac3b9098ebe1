// Where the steps of a prompt end.
#include "engine/prompt_cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/chunk_budget.h"

namespace slip {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PromptCuts, AShortPromptIsOneStep) {
  const PromptCuts cuts = cut_prompt(100, {}, 0);
  EXPECT_THAT(cuts.ends, ElementsAre(100));
  EXPECT_THAT(cuts.checkpoints, IsEmpty());
}

TEST(PromptCuts, RemembersEndsOfMessages) {
  const std::vector<int64_t> ends = {50, 60, 130, 140};
  const PromptCuts cuts = cut_prompt(150, ends, 0);
  EXPECT_THAT(cuts.checkpoints, ElementsAre(50, 130, 140)) << "far enough apart, and the last one";
  EXPECT_THAT(cuts.ends, ElementsAre(50, 130, 140, 150));
}

TEST(PromptCuts, EndsOutsideThePromptAreIgnored) {
  const std::vector<int64_t> ends = {-5, 0, 200, 100};
  EXPECT_THAT(cut_prompt(100, ends, 0).checkpoints, ElementsAre(100));
}

TEST(PromptCuts, RemembersLongPromptsNowAndThen) {
  EXPECT_THAT(cut_prompt(1500, {}, 0).checkpoints, ElementsAre(512, 1024));
  EXPECT_LE(cut_prompt(100'000, {}, 0).checkpoints.size(), 8u);
}

// A prompt that begins like another has the same cuts up to there, whatever comes later.
TEST(PromptCuts, CutsOfABeginningDoNotDependOnWhatFollows) {
  const std::vector<int64_t> few = {50, 60, 700}, many = {50, 60, 700, 720, 1100, 1300};
  const PromptCuts short_one = cut_prompt(710, few, 256), long_one = cut_prompt(1400, many, 256);
  ASSERT_THAT(short_one.ends, ElementsAre(50, 256, 512, 700, 710));
  EXPECT_THAT(long_one.ends, ElementsAre(50, 256, 512, 700, 768, 1024, 1100, 1280, 1300, 1400));
  for (const int64_t checkpoint : short_one.checkpoints)
    EXPECT_THAT(long_one.ends, ::testing::Contains(checkpoint));
}

TEST(ChunkBudget, GivesAsManyRowsAsTheTimeAllows) {
  ChunkBudget budget(0.05);
  EXPECT_GT(budget.rows(), 0);
  for (int i = 0; i < 50; ++i) budget.add_prompt_step(100, 0.1, ChunkBudget::Beside::nobody);
  EXPECT_NEAR(double(budget.rows()), 50, 1) << "a millisecond each";
  for (int i = 0; i < 50; ++i) budget.add_decode_step(0.01);
  EXPECT_NEAR(double(budget.rows()), 30, 1) << "three times the step that others wait for";
  for (int i = 0; i < 50; ++i) budget.add_prompt_step(20, 0.02, ChunkBudget::Beside::others);
  EXPECT_NEAR(double(budget.rows()), 60, 1) << "half a millisecond, the decode rows aside";
  for (int i = 0; i < 50; ++i) budget.add_prompt_step(1, 0.5, ChunkBudget::Beside::nobody);
  EXPECT_EQ(budget.rows(), 16) << "fewer are not worth a step";
}

}  // namespace
}  // namespace slip
