#include "quant/weight.h"

#include <gtest/gtest.h>

#include <vector>

#include "quant/number_formats.h"

namespace slip {
namespace {

TEST(PlainWeight, SizesOfEveryFormat) {
  EXPECT_EQ(plain_bytes({WeightFormat::f32, 4, 16, 0}), 256u);
  EXPECT_EQ(plain_bytes({WeightFormat::bf16, 4, 16, 0}), 128u);
  EXPECT_EQ(plain_bytes({WeightFormat::f16, 4, 16, 0}), 128u);
  EXPECT_EQ(plain_bytes({WeightFormat::fp8_block, 192, 130, 128}), 192u * 130u + 2u * 2u * 4u);
  EXPECT_EQ(plain_bytes({WeightFormat::int8_row, 4, 16, 0}), 64u + 16u);
  EXPECT_EQ(plain_bytes({WeightFormat::int4_group, 3, 256, 128}), 3u * 128u + 3u * 2u * 2u);
}

TEST(WeightAt, Int4NibblesGroupsAndSigns) {
  const WeightInfo info{WeightFormat::int4_group, 2, 64, 32};
  std::vector<uint16_t> storage(plain_bytes(info) / 2, 0);
  const Weight weight = plain_weight(info, reinterpret_cast<std::byte*>(storage.data()));
  auto* codes = reinterpret_cast<uint8_t*>(weight.values.data);
  uint16_t* scales = weight.scales.as<uint16_t>(DType::f16);
  codes[32 + 16] = 0xf1;             // row 1, inputs 32 and 33
  scales[2 + 1] = float_to_f16(-2);  // row 1, group 1
  EXPECT_EQ(weight_at(weight, 1, 32), 14.0f);
  EXPECT_EQ(weight_at(weight, 1, 33), -14.0f);
  EXPECT_EQ(weight_at(weight, 1, 31), 0.0f);  // scale of group 0 is zero
}

TEST(PlainWeightDeathTest, StopsOnIndivisibleGroups) {
  std::byte storage[64];
  EXPECT_DEATH(plain_weight({WeightFormat::int4_group, 1, 48, 32}, storage), "groups of 32");
}

}  // namespace
}  // namespace slip
