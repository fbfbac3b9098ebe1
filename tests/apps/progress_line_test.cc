// Progress on a terminal and elsewhere.
#include "slipstream/common/progress_line.h"

#include <gtest/gtest.h>

namespace slip {
namespace {

std::string shown(const ProgressLine::Style& style) {
  testing::internal::CaptureStderr();
  {
    ProgressLine line(style);
    line.show("half of it, which is a long line");
    line.say("note");
    line.show("all of it");
  }
  return testing::internal::GetCapturedStderr();
}

TEST(ProgressLine, ChangesOnATerminalAndGoesAway) {
  EXPECT_EQ(shown({.one_line = true, .columns = 12}),
            "\r\033[Khalf of it,\r\033[Knote\n\r\033[Kall of it\r\033[K");
}

TEST(ProgressLine, IsLinesElsewhere) {
  EXPECT_EQ(shown({}), "half of it, which is a long line\nnote\nall of it\n");
}

TEST(ProgressLine, IsNeverDueWhereNobodyLooks) {
  testing::internal::CaptureStderr();
  ProgressLine line({.quiet = true, .one_line = true});
  line.say("note");
  EXPECT_FALSE(line.is_due());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ProgressLine, IsNotDueAtOnce) {
  ProgressLine line({.one_line = true});
  EXPECT_FALSE(line.is_due());
}

}  // namespace
}  // namespace slip
