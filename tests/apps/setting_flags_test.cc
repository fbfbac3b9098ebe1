// What failures of the library tell a person to do.
#include "slipstream/common/setting_flags.h"

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

TEST(SettingFlags, AContextThatNoFlagNamedHasOtherAdvice) {
  const auto told = [](const Error& failure, const char* advice) {
    return explain(advise_on_context(failure, advice));
  };
  const Error too_long = error("too long").about("context");
  EXPECT_EQ(told(too_long, "--window sets it"), "too long; --window sets it");
  EXPECT_EQ(told(too_long, nullptr), "too long");
  EXPECT_EQ(told(error("odd").about("drafter"), "--window sets it"),
            "odd; --drafter-model sets the drafter");
}

}  // namespace
}  // namespace slip
