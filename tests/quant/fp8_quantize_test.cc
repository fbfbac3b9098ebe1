// Quantizing to fp8 against a naive formula, in double, block by block.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "quant/fp8_block.h"
#include "quant/number_formats.h"
#include "tensor/buffer.h"

namespace slip {
namespace {

using ::testing::HasSubstr;

struct Matrix {
  Matrix(WeightFormat format, int64_t out, int64_t in)
      : info{format, out, in, format == WeightFormat::fp8_block ? kFp8Block : 0},
        buffer(host_memory(), plain_bytes(info)),
        weight(plain_weight(info, buffer.data())) {}

  void set(int64_t row, int64_t column, float value) const {
    const int64_t at = row * info.in + column;
    if (info.format == WeightFormat::f32) weight.values.f32()[at] = value;
    if (info.format == WeightFormat::bf16)
      weight.values.as<uint16_t>(DType::bf16)[at] = float_to_bf16(value);
    if (info.format == WeightFormat::f16)
      weight.values.as<uint16_t>(DType::f16)[at] = float_to_f16(value);
  }
  Weight rows(int64_t first, int64_t count) const {
    Weight part = weight;
    part.info.out = count;
    part.values = weight.values.slice(first, count);
    return part;
  }

  WeightInfo info;
  Buffer buffer;
  Weight weight;
};

// Values over many magnitudes, so that subnormal codes occur too.
void fill(const Matrix& matrix) {
  std::mt19937 random(5);
  for (int64_t row = 0; row < matrix.info.out; ++row)
    for (int64_t i = 0; i < matrix.info.in; ++i) {
      const float mantissa = float(int(random() % 2001) - 1000) / 1024;
      matrix.set(row, i, std::ldexp(mantissa, -int(random() % 14)));
    }
}

// The code whose value is nearest; the even one of two that are equally near.
uint8_t nearest_code(double value) {
  uint8_t best = 0;
  double least = INFINITY;
  for (int code = 0; code < 256; ++code) {
    if (fp8_is_nan(uint8_t(code)) || (code >= 128) != std::signbit(value)) continue;
    const double distance = std::abs(fp8_to_float(uint8_t(code)) - value);
    if (distance < least || (distance == least && code % 2 == 0)) best = uint8_t(code);
    least = std::min(least, distance);
  }
  return best;
}

TEST(QuantizeFp8, IsTheNaiveFormulaOnPartialBlocks) {
  for (const WeightFormat format : {WeightFormat::f32, WeightFormat::bf16, WeightFormat::f16}) {
    const Matrix from(format, 130, 261), into(WeightFormat::fp8_block, 130, 261);
    fill(from);
    ASSERT_TRUE(quantize_fp8_blocks(from.weight, into.weight, 0).ok());
    for (int64_t block = 0; block < 2 * 3; ++block) {
      const int64_t top = block / 3 * 128, left = block % 3 * 128;
      const int64_t bottom = std::min<int64_t>(top + 128, 130);
      const int64_t right = std::min<int64_t>(left + 128, 261);
      double largest = 0;
      for (int64_t r = top; r < bottom; ++r)
        for (int64_t c = left; c < right; ++c)
          largest = std::max(largest, std::abs(double(weight_at(from.weight, r, c))));
      const float scale = bf16_to_float(float_to_bf16(float(largest / 448)));
      ASSERT_EQ(into.weight.scales.f32()[block], scale) << name_of(format) << ", block " << block;
      for (int64_t r = top; r < bottom; ++r)
        for (int64_t c = left; c < right; ++c)
          ASSERT_EQ(into.weight.values.as<uint8_t>(DType::fp8_e4m3)[r * 261 + c],
                    nearest_code(double(weight_at(from.weight, r, c)) / double(scale)))
              << name_of(format) << " at " << r << ", " << c;
    }
  }
}

TEST(QuantizeFp8, PiecesGiveTheWhole) {
  const Matrix from(WeightFormat::bf16, 300, 130), whole(WeightFormat::fp8_block, 300, 130),
      pieces(WeightFormat::fp8_block, 300, 130);
  fill(from);
  ASSERT_TRUE(quantize_fp8_blocks(from.weight, whole.weight, 0).ok());
  for (const auto& [first, count] : {std::pair{256, 44}, {0, 128}, {128, 128}})
    ASSERT_TRUE(quantize_fp8_blocks(from.rows(first, count), pieces.weight, first).ok());
  EXPECT_EQ(std::memcmp(whole.buffer.data(), pieces.buffer.data(), whole.buffer.size()), 0);
}

TEST(QuantizeFp8, BlocksWithoutASizeOfTheirOwnHaveScaleOne) {
  const Matrix from(WeightFormat::f32, 1, 3 * 128), into(WeightFormat::fp8_block, 1, 3 * 128);
  from.set(0, 128 + 5, 1e-45f);  // the scale would underflow
  from.set(0, 256 + 7, -448);
  ASSERT_TRUE(quantize_fp8_blocks(from.weight, into.weight, 0).ok());
  for (int64_t block = 0; block < 3; ++block) EXPECT_EQ(into.weight.scales.f32()[block], 1);
  for (int64_t i = 0; i < 3 * 128; ++i)
    EXPECT_EQ(weight_at(into.weight, 0, i), i == 256 + 7 ? -448 : 0) << i;
}

TEST(QuantizeFp8, RefusesWhatIsNotANumber) {
  const Matrix from(WeightFormat::bf16, 200, 140), into(WeightFormat::fp8_block, 456, 140);
  for (const float bad : {INFINITY, -INFINITY, std::nanf("")}) {
    fill(from);
    from.set(131, 139, bad);
    const Status status = quantize_fp8_blocks(from.weight, into.weight, 256);
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.failure().message, HasSubstr("row 387: weight holds"));
  }
}

}  // namespace
}  // namespace slip
