#include "text/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/pretokenizer_scan.h"

namespace slip {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> split(size_t (*piece_end)(std::string_view, size_t),
                               const std::string& text) {
  std::vector<std::string> pieces;
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = piece_end(text, pos);
    pieces.push_back(text.substr(pos, end - pos));
    pos = end;
  }
  return pieces;
}
std::vector<std::string> qwen2(const std::string& text) { return split(qwen2_piece_end, text); }
std::vector<std::string> qwen35(const std::string& text) { return split(qwen35_piece_end, text); }

TEST(PreTokenizer, WordsTakeOneCharacterBeforeThem) {
  EXPECT_THAT(qwen35("Hello world, (foo) _bar"),
              ElementsAre("Hello", " world", ",", " (", "foo", ")", " _", "bar"));
  EXPECT_THAT(qwen35("x\ty\u00A0z"), ElementsAre("x", "\ty", "\u00A0z"));
  EXPECT_THAT(qwen35("a\nb\rc"), ElementsAre("a", "\n", "b", "\r", "c"));
}

TEST(PreTokenizer, DigitsStandAlone) {
  EXPECT_THAT(qwen35("a12 3\u00BD"), ElementsAre("a", "1", "2", " ", "3", "\u00BD"));
}

TEST(PreTokenizer, ContractionsFoldCase) {
  EXPECT_THAT(qwen35("I'm you'RE it's'll'Xx"),
              ElementsAre("I", "'m", " you", "'RE", " it", "'s", "'ll", "'Xx"));
  EXPECT_THAT(qwen35("x'\u017Fa"), ElementsAre("x", "'\u017F", "a")) << "the long s";
  EXPECT_THAT(qwen35("'rx 'v"), ElementsAre("'rx", " '", "v"));
}

TEST(PreTokenizer, SpacesLeaveTheirLastToTheWord) {
  EXPECT_THAT(qwen35("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(qwen35("a   "), ElementsAre("a", "   "));
  EXPECT_THAT(qwen35("a  1"), ElementsAre("a", " ", " ", "1"));
  EXPECT_THAT(qwen35("a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
  EXPECT_THAT(qwen35("  ...\n\nx"), ElementsAre(" ", " ...\n\n", "x"));
}

TEST(PreTokenizer, MarksBelongToWordsInQwen35Only) {
  const std::string virama = "\u0938\u094D\u0924";
  EXPECT_THAT(qwen35(virama), ElementsAre(virama));
  EXPECT_THAT(qwen2(virama), ElementsAre("\u0938", "\u094D\u0924"));
  EXPECT_THAT(qwen35("1\u0301\u0301 \u0301x"), ElementsAre("1", "\u0301\u0301", " \u0301x"));
  EXPECT_THAT(qwen2(".\u0301\u0301\n"), ElementsAre(".\u0301\u0301\n"));
}

Result<PreTokenizer> read(const std::string& json) {
  return PreTokenizer::read(parse_json(json, "test").value());
}

TEST(PreTokenizer, RefusesWhatIsNotImplementedByName) {
  const auto message = [](const std::string& json) {
    const Result<PreTokenizer> result = read(json);
    return result.ok() ? "it was accepted" : result.failure().message;
  };
  EXPECT_THAT(message(R"({"type": "Whitespace"})"), HasSubstr("Whitespace"));
  EXPECT_THAT(message(R"({"type": "Split", "pattern": {"Regex": "\\w+"}, "behavior": "Isolated"})"),
              HasSubstr("\\w+"));
  EXPECT_THAT(message(R"({"type": "ByteLevel", "add_prefix_space": true})"),
              HasSubstr("add_prefix_space"));
  EXPECT_THAT(message(R"({"type": "ByteLevel", "add_prefix_space": false})"),
              HasSubstr("use_regex"));
  EXPECT_THAT(message(R"({"type": "Sequence", "pretokenizers": 3})"), HasSubstr("pretokenizers"));
  EXPECT_THAT(message(R"([])"), HasSubstr("must be an object"));
}

TEST(PreTokenizer, ALiteralEndsAPiece) {
  const Result<PreTokenizer> result =
      read(R"({"type": "Split", "pattern": {"String": "-"}, "behavior": "MergedWithPrevious"})");
  ASSERT_TRUE(result.ok()) << result.failure().message;
  EXPECT_EQ(result.value().piece_end("ab-cd", 0), 3u);
  EXPECT_EQ(result.value().piece_end("ab-cd", 3), 5u);
}

}  // namespace
}  // namespace slip
