#include "quant/kv_recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slip {
namespace {

using ::testing::HasSubstr;

constexpr KvRecipe both(KvCodec codec) { return {codec, codec}; }

TEST(ParseKvRecipe, TakesOurNames) {
  EXPECT_EQ(parse_kv_recipe("f32").value(), both(KvCodec::f32));
  EXPECT_EQ(parse_kv_recipe("bf16").value(), both(KvCodec::bf16));
  EXPECT_EQ(parse_kv_recipe("fp8").value(), both(KvCodec::fp8));
  EXPECT_EQ(parse_kv_recipe("int8").value(), both(KvCodec::int8));
  EXPECT_EQ(parse_kv_recipe("k8v8").value(), both(KvCodec::int8));
  EXPECT_EQ(parse_kv_recipe("k4v4").value(), both(KvCodec::tq4));
  EXPECT_EQ(parse_kv_recipe("k4v3").value(), (KvRecipe{KvCodec::tq4, KvCodec::tq3}));
  EXPECT_EQ(parse_kv_recipe("k2v8").value(), (KvRecipe{KvCodec::tq2, KvCodec::int8}));
  EXPECT_EQ(parse_kv_recipe("turboquant").value(), both(KvCodec::tq4));
}

// The bytes of keys and values of a head of 256 that the published implementations really take;
// ours never need more than 2 % above that.
TEST(ParseKvRecipe, PublishedNamesMeanTheNearestOfOurs) {
  const struct {
    const char* name;
    KvRecipe recipe;
    double published_bytes;
  } cases[] = {
      {"turboquant35", both(KvCodec::tq4), 128 + 128},
      {"turboquant25", {KvCodec::tq3, KvCodec::tq2}, 128 + 128},
      {"turboquant_asym", both(KvCodec::tq4), 128 + 128},
      {"turboquant_q8k_tq35v", {KvCodec::int8, KvCodec::tq4}, 512 + 512},
      {"turboquant_q8k_tq25v", {KvCodec::int8, KvCodec::tq3}, 512 + 512},
      {"turboquant_k8v4", {KvCodec::int8, KvCodec::tq4}, 388},
      {"turboquant_4bit_nc", both(KvCodec::tq4), 262},
      {"turboquant_k3v4_nc", {KvCodec::tq3, KvCodec::tq4}, 230},
      {"turboquant_3bit_nc", both(KvCodec::tq3), 198},
  };
  for (const auto& published : cases) {
    const auto recipe = parse_kv_recipe(published.name);
    ASSERT_TRUE(recipe.ok()) << published.name;
    EXPECT_EQ(recipe.value(), published.recipe) << published.name;
    EXPECT_LE(double(bytes_per_position(published.recipe, 256)), 1.02 * published.published_bytes)
        << published.name;
  }
}

TEST(ParseKvRecipe, RefusesTheRestAndSaysWhatThereIs) {
  for (const char* name : {"", "k4", "k4v", "k5v4", "K4V4", "k4v4 ", "k16v16", "q8_0", "turbo"}) {
    const auto recipe = parse_kv_recipe(name);
    ASSERT_FALSE(recipe.ok()) << name;
    EXPECT_THAT(recipe.failure().message, HasSubstr(cat("\"", name, "\"")));
    for (const std::string& known : kv_recipe_names())
      EXPECT_THAT(recipe.failure().message, HasSubstr(known));
  }
}

TEST(KvRecipe, EveryNameParsesAndNamesItself) {
  for (const std::string& name : kv_recipe_names()) {
    const auto recipe = parse_kv_recipe(name);
    ASSERT_TRUE(recipe.ok()) << name;
    EXPECT_EQ(is_coded(recipe.value().keys), is_coded(recipe.value().values)) << name;
    EXPECT_EQ(parse_kv_recipe(name_of(recipe.value())).value(), recipe.value()) << name;
  }
  EXPECT_EQ(name_of(both(KvCodec::int8)), "int8");
  EXPECT_EQ(name_of({KvCodec::int8, KvCodec::tq4}), "k8v4");
}

TEST(KvRecipe, BytesPerPosition) {
  const struct {
    const char* name;
    uint64_t of_128, of_256;
  } cases[] = {{"f32", 1024, 2048}, {"bf16", 512, 1024}, {"fp8", 256, 512},  {"int8", 260, 516},
               {"k8v4", 196, 388},  {"k4v4", 132, 260},  {"k4v3", 116, 228}, {"k3v3", 100, 196},
               {"k3v2", 84, 164},   {"k2v2", 68, 132}};
  for (const auto& expected : cases) {
    const KvRecipe recipe = parse_kv_recipe(expected.name).value();
    EXPECT_EQ(bytes_per_position(recipe, 128), expected.of_128) << expected.name;
    EXPECT_EQ(bytes_per_position(recipe, 256), expected.of_256) << expected.name;
  }
}

TEST(KvRecipe, PlainTypes) {
  EXPECT_EQ(plain_dtype(both(KvCodec::f32)), DType::f32);
  EXPECT_EQ(plain_dtype(both(KvCodec::bf16)), DType::bf16);
  EXPECT_EQ(plain_dtype(both(KvCodec::fp8)), DType::fp8_e4m3);
  EXPECT_DEATH(plain_dtype(both(KvCodec::tq4)), "a coded recipe has no plain type");
}

}  // namespace
}  // namespace slip
