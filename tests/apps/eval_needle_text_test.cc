#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "slipstream/eval/needle_text.h"

namespace slip {
namespace {

// A token per four letters: any measure does that grows with the text.
Result<int64_t> count(const std::string& message) { return int64_t(message.size() / 4); }

NeedleText make(int64_t tokens, double depth, uint64_t seed = 0) {
  return make_needle_text({.tokens = tokens, .depth = depth, .seed = seed}, count).value();
}

size_t occurrences(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(NeedleText, HidesOneSentenceAndAsksForIt) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const NeedleText text = make(600, 0.5, seed);
    EXPECT_EQ(occurrences(text.message, "The secret of the "), 1u);
    EXPECT_EQ(occurrences(text.message, text.secret + ".\n\n"), 1u) << text.secret;
    EXPECT_EQ(occurrences(text.message, "\n\nWhat is the secret of the "), 1u);
    EXPECT_TRUE(text.message.ends_with("?"));
    for (const char* wrong : {"{", "}", " a i", " a e", " a a", " a o"})
      EXPECT_EQ(text.message.find(wrong), std::string::npos) << text.message;
  }
}

TEST(NeedleText, IsAsLongAsWanted) {
  for (const int64_t tokens : {40, 256, 1500, 20000}) {
    const NeedleText text = make(tokens, 0.25, 7);
    EXPECT_LE(text.tokens, tokens);
    EXPECT_GT(text.tokens, tokens - 40) << "a sentence more would fit";
    EXPECT_EQ(text.tokens, count(text.message).value());
  }
  const auto refused = make_needle_text({.tokens = 10, .depth = 0, .seed = 0}, count);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.failure().message, testing::HasSubstr("10 tokens"));
}

TEST(NeedleText, PutsTheNeedleWhereItIsToBe) {
  for (const double depth : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    const NeedleText text = make(2000, depth, 3);
    const auto needle = double(text.message.find("The secret of"));
    const auto question = double(text.message.find("What is the secret"));
    EXPECT_NEAR(needle / question, depth, 0.04);
  }
  EXPECT_TRUE(make(300, 0).message.starts_with("The secret of the "));
}

TEST(NeedleText, DependsOnTheSeedAlone) {
  EXPECT_EQ(make(500, 0.5, 9).message, make(500, 0.5, 9).message);
  std::set<std::string> texts;
  for (uint64_t seed = 0; seed < 20; ++seed) texts.insert(make(500, 0.5, seed).message);
  EXPECT_EQ(texts.size(), 20u);
  // The same on every machine and library.
  EXPECT_EQ(make(60, 1, 1).secret, "letter-island");
}

TEST(NamesSecret, AsAWholeWord) {
  EXPECT_TRUE(names_secret("The secret of the bell is 4718.", "4718"));
  EXPECT_TRUE(names_secret("Ida", "Ida"));
  EXPECT_TRUE(names_secret("Not Adam but Ada.", "Ada"));
  EXPECT_FALSE(names_secret("It is 14718.", "4718"));
  EXPECT_FALSE(names_secret("It is 47180.", "4718"));
  EXPECT_FALSE(names_secret("Adam", "Ada"));
  EXPECT_FALSE(names_secret("", "Ada"));
}

}  // namespace
}  // namespace slip
