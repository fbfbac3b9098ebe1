// Stop strings in streamed text: the result must not depend on how the text was cut.
#include "engine/stop_strings.h"

#include <gtest/gtest.h>

namespace slip {
namespace {

struct Streamed {
  std::string text;
  bool matched = false;
  bool operator==(const Streamed&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Streamed& streamed) {
  return out << '"' << streamed.text << (streamed.matched ? "\" stopped" : "\" ended");
}

// `cuts` bit i: a new piece begins after byte i.
Streamed stream(const std::vector<std::string>& stops, const std::string& text, uint32_t cuts) {
  StopStrings stream(stops);
  Streamed result;
  std::string piece;
  for (size_t i = 0; i < text.size(); ++i) {
    piece += text[i];
    if (i + 1 < text.size() && !(cuts >> i & 1)) continue;
    result.text += stream.push(piece);
    piece.clear();
  }
  result.text += stream.finish();
  result.matched = stream.matched();
  return result;
}

struct Case {
  std::vector<std::string> stops;
  std::string text;
  Streamed expected;
};

TEST(StopStrings, EveryCutGivesTheSame) {
  const std::vector<Case> cases = {
      {{"STOP"}, "go on STOP it", {"go on ", true}},
      {{"STOP"}, "STOSTOP", {"STO", true}},
      {{"STOP"}, "no match STO", {"no match STO", false}},
      {{"aab"}, "aaaaab!", {"aaa", true}},
      {{"abab"}, "abaabab", {"aba", true}},
      {{"x", "yz"}, "ab yz x", {"ab ", true}},
      {{"abcd", "bc"}, "zabcd", {"za", true}},
      {{"bcd", "abcd"}, "zabcd", {"z", true}},
      {{"\n\n"}, "a\nb\n\nc", {"a\nb", true}},
      {{"a"}, "a", {"", true}},
      {{"é!"}, "café è é!", {"café è ", true}},
      {{""}, "nothing", {"nothing", false}},
      {{}, "nothing", {"nothing", false}},
      {{"END"}, "", {"", false}},
  };
  for (const Case& tested : cases) {
    const uint32_t ways = tested.text.empty() ? 1 : 1u << (tested.text.size() - 1);
    for (uint32_t cuts = 0; cuts < ways; ++cuts)
      ASSERT_EQ(stream(tested.stops, tested.text, cuts), tested.expected)
          << tested.text << ", cuts " << cuts;
  }
}

TEST(StopStrings, HoldsBackOnlyWhatCouldBecomeAStop) {
  StopStrings stream({"</tool>", "STOP"});
  EXPECT_EQ(stream.push("a < b"), "a < b");
  EXPECT_EQ(stream.push(" <"), " ");
  EXPECT_EQ(stream.push("/too"), "");
  EXPECT_EQ(stream.push("thbrush>"), "</toothbrush>");
  EXPECT_EQ(stream.push("ST"), "");
  EXPECT_EQ(stream.finish(), "ST");
}

TEST(StopStrings, SaysNothingAfterAMatch) {
  StopStrings stream({"."});
  EXPECT_EQ(stream.push("one. two"), "one");
  EXPECT_TRUE(stream.matched());
  EXPECT_EQ(stream.push("three."), "");
  EXPECT_EQ(stream.finish(), "");
}

// The pieces given out are whole characters if those pushed are.
TEST(StopStrings, NeverCutsACharacter) {
  StopStrings stream({"éé"});
  EXPECT_EQ(stream.push("xé"), "x");
  EXPECT_EQ(stream.push("è"), "éè");
}

}  // namespace
}  // namespace slip
