#include "text/utf8.h"

#include <gtest/gtest.h>

namespace slip {
namespace {

std::string lossy(std::string_view bytes) {
  std::string out;
  append_lossy_utf8(bytes, out);
  return out;
}

TEST(Utf8, ValidTextIsKept) {
  const std::string text = "plain, \xC3\xA9, \xE6\x97\xA5, \xF0\x9F\x98\x80, and long enough";
  EXPECT_TRUE(is_valid_utf8(text));
  EXPECT_EQ(lossy(text), text);
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndValuesAboveUnicode) {
  for (const char* bytes :
       {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\x80", "\xC3"})
    EXPECT_FALSE(is_valid_utf8(bytes)) << testing::PrintToString(std::string(bytes));
}

TEST(Utf8, OneReplacementPerMaximalInvalidPart) {
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(lossy("a\xF0\x9F\x98"), "a" + r);              // one unfinished character
  EXPECT_EQ(lossy("\xF0\x9F\x98(\xE2\x82"), r + "(" + r);  // one broken off, one unfinished
  EXPECT_EQ(lossy("\xED\xA0\x80"), r + r + r);             // a surrogate is three parts
  EXPECT_EQ(lossy("\xFF\xFE"), r + r);
}

TEST(Utf8, AStreamWaitsForUnfinishedCharacters) {
  const std::string text = "x\xF0\x9F\x98\x80y";
  std::string pending;
  std::string out;
  for (const char byte : text) {
    pending += byte;
    pending.erase(0, append_finished_utf8(pending, out));
    EXPECT_TRUE(is_valid_utf8(out)) << "half a character came out";
    EXPECT_EQ(out.find(kReplacementCharacter), std::string::npos);
  }
  EXPECT_EQ(out, text);
}

TEST(Utf8, EveryCodePointSurvivesEncodingAndDecoding) {
  for (uint32_t value = 0; value < 0x110000; ++value) {
    if (value >= 0xD800 && value < 0xE000) continue;
    std::string bytes;
    append_utf8(value, bytes);
    ASSERT_TRUE(is_valid_utf8(bytes)) << value;
    const CodePoint point = decode_valid_utf8(bytes.data());
    ASSERT_EQ(point.value, value);
    ASSERT_EQ(point.length, bytes.size());
    ASSERT_EQ(previous_code_point("a" + bytes, 1 + bytes.size()), 1u);
  }
}

TEST(Utf8, AStrangersLineStaysOneShortLine) {
  EXPECT_EQ(printable_line("caf\xC3\xA9 \xF0\x9F\x98\x80", 64), "caf\xC3\xA9 \xF0\x9F\x98\x80");
  EXPECT_EQ(printable_line("a\r\nb\x1B[2J\x7F\t", 64), "a??b?[2J??");
  EXPECT_EQ(printable_line("a\xC2\x9B"
                           "2J",
                           64),
            "a?2J");  // the one-character form of ESC [
  EXPECT_EQ(printable_line("abcdef", 3), "abc");
  EXPECT_TRUE(is_valid_utf8(printable_line("ab\xC3\xA9", 3)));
}

}  // namespace
}  // namespace slip
