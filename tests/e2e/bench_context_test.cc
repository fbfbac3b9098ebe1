// bench context: every depth is there, and the parts add up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/process.h"

namespace slip::e2e {
namespace {

TEST(BenchContext, MeasuresEveryDepth) {
  for (const char* recipe : {"bf16", "k4v4"}) {
    const JsonObject object = run({"bench", "context", "qwen3.5-nano", "--tokens", "2100",
                                   "--decoded", "4", "--kv-cache", recipe, "--json"})
                                  .json();
    EXPECT_EQ(object.at("kv_cache").as_string(), recipe);
    const JsonArray& depths = object.at("depths").as_array();
    ASSERT_EQ(depths.size(), 3u);
    const int64_t expected[] = {1024, 2048, 2096};
    for (size_t i = 0; i < 3; ++i) {
      const JsonObject& depth = depths[i].as_object();
      EXPECT_EQ(depth.at("context").as_int64(), expected[i]);
      EXPECT_GT(depth.at("attention_us").as_double(), 0);
      EXPECT_GT(depth.at("delta_net_us").as_double(), 0);
      EXPECT_NEAR(depth.at("decode_us").as_double(),
                  depth.at("attention_us").as_double() + depth.at("delta_net_us").as_double() +
                      depth.at("other_us").as_double(),
                  1e-6);
    }
  }
}

TEST(BenchContext, RefusalsSayWhatToDo) {
  const Finished unknown = run({"bench", "context", "qwen3.5-nano", "--kv-cache", "k5v5"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, ::testing::HasSubstr("k4v4"));
  EXPECT_EQ(run({"bench", "context", "qwen3.5-nano", "--decoded", "0"}).status, 2);
  const Finished much = run({"bench", "context", "--tokens", "5", "--decoded", "16"});
  EXPECT_EQ(much.status, 1);
  EXPECT_EQ(much.out, "");
  EXPECT_THAT(much.err, ::testing::HasSubstr("a text of 5 tokens is not longer than the 16"));
  const Finished named = run({"bench", "context", "--tokens", "20", "--json"});
  EXPECT_EQ(named.json().at("model").as_string(), "minnow");
}

}  // namespace
}  // namespace slip::e2e
