// What failures of the library tell a person to do.
#include "setting_flags.h"

#include <gtest/gtest.h>

namespace slip {
namespace {

TEST(SettingFlags, NameTheFlagOfASetting) {
  EXPECT_EQ(explain(error("too long").about("context")), "too long; --ctx sets the context");
  EXPECT_EQ(explain(error("too long").about("context").in("prompt")),
            "prompt: too long; --ctx sets the context");
  EXPECT_EQ(explain(error("no such file")), "no such file");
  EXPECT_EQ(explain(error("odd").about("something without a flag")), "odd");
}

}  // namespace
}  // namespace slip
