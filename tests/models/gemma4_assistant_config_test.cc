// config.json of Gemma 4's drafters, and whether they fit a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/json_files.h"
#include "models/gemma4_assistant/config.h"
#include "models/model_source.h"
#include "tests/golden/tiny_folder.h"

namespace slip::gemma4_assistant {
namespace {

using ::testing::HasSubstr;

JsonObject config_of(const std::string& folder) {
  return read_config_json(tiny_folder(folder)).value();
}

TEST(Gemma4AssistantConfig, ADrafterIsNoModelAndAModelNoDrafter) {
  const auto opened = ModelSource::open(tiny_folder("gemma4_e_assistant"));
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.failure().message, HasSubstr("drafter"));
  EXPECT_STREQ(opened.failure().setting, "drafter");
  const auto read = read_drafter_config(config_of("gemma4_e"), "config.json");
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.failure().message, HasSubstr("gemma4_assistant"));
}

TEST(Gemma4AssistantConfig, DraftersReadTheLastOwners) {
  const gemma4::Config target = gemma4::read_config(config_of("gemma4_e"), "target").value();
  DrafterConfig drafter = read_drafter_config(config_of("gemma4_e_assistant"), "drafter").value();
  ASSERT_TRUE(attach(drafter, target).ok());
  EXPECT_EQ(drafter.text.layers[0].keys_of, 3);
  EXPECT_EQ(drafter.text.layers[3].keys_of, 4);
  DrafterConfig wrong = drafter;
  wrong.backbone = 96;
  const Status refused = attach(wrong, target);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.failure().message, HasSubstr("hidden size 96, this one has 64"));
}

}  // namespace
}  // namespace slip::gemma4_assistant
