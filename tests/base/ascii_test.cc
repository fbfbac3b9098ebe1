#include "base/ascii.h"

#include <gtest/gtest.h>

namespace slip {
namespace {

TEST(Ascii, SplitsAtEverySeparator) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split("a,bc,,d", ','), (Parts{"a", "bc", "", "d"}));
  EXPECT_EQ(split(",a,", ','), (Parts{"", "a", ""}));
  EXPECT_EQ(split("", ','), (Parts{""}));
}

TEST(Ascii, TrimsBlanksAndLineEnds) {
  EXPECT_EQ(trimmed(" \ta b\r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \n"), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Ascii, LowersLettersAlone) {
  EXPECT_EQ(lower_ascii("AZ az @[ \xC3\x84"), "az az @[ \xC3\x84");
}

TEST(Ascii, ComparesLettersOfEitherCase) {
  EXPECT_TRUE(equal_ignoring_case("Content-Length", "content-LENGTH"));
  EXPECT_FALSE(equal_ignoring_case("a", "ab"));
  EXPECT_FALSE(equal_ignoring_case("@", "`"));
}

TEST(Ascii, NumbersAreDigitsAlone) {
  EXPECT_EQ(parse_decimal("0042"), 42u);
  EXPECT_EQ(parse_decimal("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x1", "1.0", "18446744073709551616"})
    EXPECT_EQ(parse_decimal(text), std::nullopt) << text;
}

TEST(Ascii, DecodesWholeEscapesAlone) {
  EXPECT_EQ(percent_decoded("a%2Fb%c3%a9"), "a/b\xC3\xA9");
  EXPECT_EQ(percent_decoded("100%"), "100%");
  EXPECT_EQ(percent_decoded("%4"), "%4");
  EXPECT_EQ(percent_decoded("%g0%0g%%41"), "%g0%0g%A");
}

}  // namespace
}  // namespace slip
