// The reference's linear layers against values computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "kernels/ref/ref_ops.h"
#include "quant/number_formats.h"
#include "tensor/buffer.h"

namespace slip {
namespace {

using ::testing::ElementsAre;

View view_of(std::vector<float>& values, const Shape& shape) {
  EXPECT_EQ(int64_t(values.size()), shape.count());
  return {reinterpret_cast<std::byte*>(values.data()), DType::f32, shape};
}

struct OwnedWeight {
  explicit OwnedWeight(const WeightInfo& info)
      : buffer(host_memory(), plain_bytes(info)), weight(plain_weight(info, buffer.data())) {}
  uint8_t* u8() const { return reinterpret_cast<uint8_t*>(weight.values.data); }
  uint16_t* u16() const { return reinterpret_cast<uint16_t*>(weight.values.data); }
  Buffer buffer;
  Weight weight;
};

// y = W x with x = (1, 2, 4): the sums tell which weights were used.
std::vector<float> times_1_2_4(const Weight& weight) {
  std::vector<float> x = {1, 2, 4};
  std::vector<float> y(size_t(weight.info.out), -1.0f);
  make_ref_ops()->linear(
      {.x = view_of(x, {1, 3}), .weight = weight, .out = view_of(y, {1, weight.info.out})});
  return y;
}

TEST(RefLinear, SixteenAndThirtyTwoBitWeights) {
  const OwnedWeight f32({WeightFormat::f32, 2, 3, 0});
  const OwnedWeight bf16({WeightFormat::bf16, 2, 3, 0});
  const OwnedWeight f16({WeightFormat::f16, 2, 3, 0});
  const float values[] = {1, 10, 100, -1, 0.5f, 3};
  for (int i = 0; i < 6; ++i) {
    f32.weight.values.f32()[i] = values[i];
    bf16.u16()[i] = float_to_bf16(values[i]);
    f16.u16()[i] = float_to_f16(values[i]);
  }
  for (const OwnedWeight* owned : {&f32, &bf16, &f16})
    EXPECT_THAT(times_1_2_4(owned->weight), ElementsAre(421, 12));
}

TEST(RefLinear, Fp8AndInt8Weights) {
  const OwnedWeight fp8({WeightFormat::fp8_block, 2, 3, kFp8Block});
  const OwnedWeight int8({WeightFormat::int8_row, 2, 3, 0});
  const float values[] = {1, 2, 3, -4, 5, 6};
  for (int i = 0; i < 6; ++i) {
    fp8.u8()[i] = float_to_fp8(values[i]);
    int8.u8()[i] = uint8_t(int8_t(values[i]));
  }
  fp8.weight.scales.f32()[0] = 0.5f;
  int8.weight.scales.f32()[0] = 2;
  int8.weight.scales.f32()[1] = -1;
  EXPECT_THAT(times_1_2_4(fp8.weight), ElementsAre(8.5f, 15));
  EXPECT_THAT(times_1_2_4(int8.weight), ElementsAre(34, -30));
}

TEST(RefLinear, Fp8BlocksAreWhole128) {
  const OwnedWeight owned({WeightFormat::fp8_block, 129, 130, kFp8Block});
  for (int64_t i = 0; i < 129 * 130; ++i) owned.u8()[i] = 0x38;  // 1.0
  for (int i = 0; i < 4; ++i) owned.weight.scales.f32()[i] = float(1 << (8 * i));
  std::vector<float> x(130, 1.0f), y(129);
  make_ref_ops()->linear(
      {.x = view_of(x, {1, 130}), .weight = owned.weight, .out = view_of(y, {1, 129})});
  EXPECT_EQ(y[127], 128.0f * 1 + 2.0f * 256);
  EXPECT_EQ(y[128], 128.0f * 65536 + 2.0f * 16777216);
}

TEST(RefLinear, Int4Weights) {
  const OwnedWeight owned({WeightFormat::int4_group, 2, 64, 32});
  for (int i = 0; i < 64; ++i) owned.u8()[i] = 0x88;  // all zero
  owned.u8()[32 + 0] = 0x8f;                          // row 1, input 0: 7
  owned.u8()[32 + 31] = 0x08;                         // row 1, input 63: -8
  uint16_t* scales = owned.weight.scales.as<uint16_t>(DType::f16);
  scales[2] = float_to_f16(2);
  scales[3] = float_to_f16(-0.5f);
  std::vector<float> x(64, 99.0f), y(2);
  x[0] = 3;
  x[63] = 5;
  make_ref_ops()->linear(
      {.x = view_of(x, {1, 64}), .weight = owned.weight, .out = view_of(y, {1, 2})});
  EXPECT_THAT(y, ElementsAre(0, 7 * 2 * 3 + 8 * 0.5f * 5));
}

TEST(RefLinear, AddsAndTakesRows) {
  const OwnedWeight owned({WeightFormat::f32, 1, 2, 0});
  owned.weight.values.f32()[0] = 1;
  owned.weight.values.f32()[1] = 10;
  std::vector<float> x = {1, 2, 3, 4}, y = {1000, 2000};
  make_ref_ops()->linear(
      {.x = view_of(x, {2, 2}), .weight = owned.weight, .out = view_of(y, {2, 1}), .add = true});
  EXPECT_THAT(y, ElementsAre(1021, 2043));
}

TEST(RefLinear, PackKeepsThePlainLayout) {
  const OwnedWeight owned({WeightFormat::int8_row, 3, 5, 0});
  for (int i = 0; i < 15; ++i) owned.u8()[i] = uint8_t(i);
  for (int i = 0; i < 3; ++i) owned.weight.scales.f32()[i] = float(i + 1);
  const auto ops = make_ref_ops();
  Buffer storage(host_memory(), ops->packed_bytes(owned.weight.info));
  const Weight packed = ops->pack(owned.weight, storage.bytes());
  EXPECT_FALSE(packed.packed);
  EXPECT_NE(packed.values.data, owned.weight.values.data);
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t i = 0; i < 5; ++i)
      EXPECT_EQ(weight_at(packed, r, i), weight_at(owned.weight, r, i));
}

TEST(RefEmbed, TakesRowsOfTheTable) {
  const OwnedWeight table({WeightFormat::bf16, 3, 2, 0});
  for (int i = 0; i < 6; ++i) table.u16()[i] = float_to_bf16(float(i));
  int32_t ids[] = {2, 0};
  std::vector<float> out(4);
  make_ref_ops()->embed({.ids = {reinterpret_cast<std::byte*>(ids), DType::i32, {2}},
                         .table = table.weight,
                         .out = view_of(out, {2, 2})});
  EXPECT_THAT(out, ElementsAre(4, 5, 0, 1));
}

TEST(RefLinearDeathTest, NamesTheDimension) {
  const OwnedWeight owned({WeightFormat::f32, 2, 4, 0});
  std::vector<float> x(3), y(2), wide(3);
  const auto ops = make_ref_ops();
  EXPECT_DEATH(
      ops->linear({.x = view_of(x, {1, 3}), .weight = owned.weight, .out = view_of(y, {1, 2})}),
      "linear: in: x has 3, weight has 4");
  std::vector<float> four(4);
  EXPECT_DEATH(
      ops->linear(
          {.x = view_of(four, {1, 4}), .weight = owned.weight, .out = view_of(wide, {1, 3})}),
      "linear: out: weight has 2, out has 3");
  EXPECT_DEATH(
      ops->linear({.x = view_of(four, {4}), .weight = owned.weight, .out = view_of(y, {1, 2})}),
      "linear: x has shape \\[4\\], expected 2 dimensions");
}

}  // namespace
}  // namespace slip
