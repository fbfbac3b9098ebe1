#include "base/ascii.h"

#include <gtest/gtest.h>

namespace slip {
namespace {

TEST(Ascii, TrimsBlanksAndLineEnds) {
  EXPECT_EQ(trimmed(" \ta b\r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \n"), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Ascii, LowersLettersAlone) {
  EXPECT_EQ(lower_ascii("AZ az @[ \xC3\x84"), "az az @[ \xC3\x84");
}

TEST(Ascii, DecodesWholeEscapesAlone) {
  EXPECT_EQ(percent_decoded("a%2Fb%c3%a9"), "a/b\xC3\xA9");
  EXPECT_EQ(percent_decoded("100%"), "100%");
  EXPECT_EQ(percent_decoded("%4"), "%4");
  EXPECT_EQ(percent_decoded("%g0%0g%%41"), "%g0%0g%A");
}

}  // namespace
}  // namespace slip
