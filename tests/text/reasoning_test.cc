#include "text/reasoning.h"

#include <gtest/gtest.h>

namespace slip {
namespace {

TEST(Reasoning, EndsAtTheTag) {
  const ReasoningPiece piece = next_reasoning(kQwenOutput, "ab</think>cd", false, true);
  EXPECT_EQ(piece.length, 2u);
  EXPECT_EQ(piece.skip, 8u);
  EXPECT_TRUE(piece.ended);
}

TEST(Reasoning, AToolCallEndsItAndIsLeft) {
  const ReasoningPiece piece = next_reasoning(kQwenOutput, "ab<tool_call>", false, true);
  EXPECT_EQ(piece.length, 2u);
  EXPECT_EQ(piece.skip, 0u);
  EXPECT_TRUE(piece.ended);
}

TEST(Reasoning, WithoutToolsACallIsAThought) {
  EXPECT_EQ(next_reasoning(kQwenOutput, "ab<tool_call>cd", false, false).length, 15u);
}

TEST(Reasoning, SkipsAStrayOpeningTag) {
  const ReasoningPiece piece = next_reasoning(kQwenOutput, "<think>ab", false, true);
  EXPECT_EQ(piece.length, 0u);
  EXPECT_EQ(piece.skip, 7u);
  EXPECT_FALSE(piece.ended);
}

TEST(Reasoning, HoldsBackAPartialTagUntilTheEnd) {
  EXPECT_EQ(next_reasoning(kQwenOutput, "ab</th", false, true).length, 2u);
  EXPECT_EQ(next_reasoning(kQwenOutput, "ab</th", true, true).length, 6u);
  EXPECT_EQ(next_reasoning(kQwenOutput, "a<b", false, true).length, 3u);
}

}  // namespace
}  // namespace slip
