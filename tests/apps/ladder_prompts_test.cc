#include "slipstream/bench/ladder_prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slipstream/bench/ladder_decode.h"
#include "slipstream/bench/ladder_tests.h"

namespace slip {
namespace {

using testing::HasSubstr;

std::string failure_of(const std::string& text) {
  const Result<std::vector<LadderPrompt>> prompts = parse_ladder_prompts(text, "file.json");
  return prompts.ok() ? "" : prompts.failure().message;
}

TEST(LadderPrompts, BothSetsHaveTheRecipesFiveTests) {
  const std::vector<LadderPrompt> recipe = recipe_prompts(), minnow = minnow_prompts();
  std::vector<int64_t> limits;
  for (const LadderPrompt& prompt : recipe) limits.push_back(prompt.max_tokens);
  EXPECT_THAT(limits, testing::ElementsAre(256, 512, 1024, 64, 2048));
  ASSERT_EQ(minnow.size(), recipe.size());
  for (size_t i = 0; i < recipe.size(); ++i) {
    EXPECT_EQ(minnow[i].name, recipe[i].name);
    EXPECT_LE(minnow[i].max_tokens, 200);
  }
}

TEST(LadderPrompts, AreReadFromJson) {
  const auto prompts = parse_ladder_prompts(
      R"([{"name": "A", "prompt": "Why?", "max_tokens": 7},
          {"max_tokens": 9, "prompt": "How?", "name": "B"}])",
      "file.json");
  ASSERT_TRUE(prompts.ok()) << prompts.failure().message;
  ASSERT_EQ(prompts.value().size(), 2u);
  EXPECT_EQ(prompts.value()[0].prompt, "Why?");
  EXPECT_EQ(prompts.value()[1].name, "B");
  EXPECT_EQ(prompts.value()[1].max_tokens, 9);
}

TEST(LadderPrompts, ErrorsNameTheFileThePromptAndTheField) {
  EXPECT_THAT(failure_of("nonsense"), HasSubstr("file.json"));
  EXPECT_THAT(failure_of("{}"),
              HasSubstr("file.json: expected a list of prompts, found an object"));
  EXPECT_THAT(failure_of("[]"), HasSubstr("an empty one"));
  EXPECT_THAT(failure_of("[3]"), HasSubstr("file.json: prompt 1: expected an object"));
  const std::string good = R"({"name": "A", "prompt": "Why?", "max_tokens": 7})";
  const auto second = [&](const std::string& item) {
    return failure_of("[" + good + "," + item + "]");
  };
  EXPECT_THAT(second(R"({"prompt": "Why?", "max_tokens": 7})"), HasSubstr("prompt 2: \"name\""));
  EXPECT_THAT(second(R"({"name": "A", "max_tokens": 7})"), HasSubstr("\"prompt\" is missing"));
  EXPECT_THAT(second(R"({"name": "A", "prompt": "Why?"})"), HasSubstr("\"max_tokens\""));
  EXPECT_THAT(second(R"({"name": "A", "prompt": "Why?", "max_tokens": 1})"),
              HasSubstr("at least 2"));
  EXPECT_THAT(second(R"({"name": "A", "prompt": "Why?", "max_tokens": "7"})"),
              HasSubstr("\"max_tokens\" is a string"));
  EXPECT_THAT(second(R"({"name": "A", "prompt": "Why?", "tokens": 7})"), HasSubstr("\"tokens\""));
}

TEST(LadderTests, TheContextHoldsTheLongest) {
  const LadderTests tests = meaningless_tests(100);
  ASSERT_EQ(tests.list.size(), 1u);
  EXPECT_EQ(tests.context(), int64_t(tests.list[0].prompt.size()) + tests.list[0].max_tokens);
  for (const int32_t id : tests.list[0].prompt) EXPECT_TRUE(id >= 0 && id < 100);
}

TEST(SimulatedAcceptance, AcceptsAsOftenAsItWasTold) {
  SimulatedAcceptance simulated(0.8);
  constexpr int kDrafts = 10000, kVocabulary = 50;
  int accepted = 0;
  for (int i = 0; i < kDrafts; ++i) {
    const int32_t draft = i % kVocabulary;
    const int32_t chosen = simulated.choose(7, draft, kVocabulary);
    EXPECT_TRUE(chosen >= 0 && chosen < kVocabulary);
    accepted += chosen == draft;
  }
  // Five standard deviations of a binomial count.
  EXPECT_NEAR(accepted, 0.8 * kDrafts, 5 * std::sqrt(kDrafts * 0.8 * 0.2));
  EXPECT_EQ(simulated.choose(7, std::nullopt, kVocabulary), 7);
  EXPECT_EQ(SimulatedAcceptance(1).choose(7, 3, kVocabulary), 3);
  EXPECT_NE(SimulatedAcceptance(0).choose(7, 3, kVocabulary), 3);
}

}  // namespace
}  // namespace slip
