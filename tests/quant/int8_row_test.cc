#include "quant/int8_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "quant/number_formats.h"
#include "tensor/buffer.h"

namespace slip {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(QuantizeInt8Row, RoundsHalfToEven) {
  // scale 1: the codes are the values, rounded
  const std::vector<float> row = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 0.501f, -127};
  std::vector<int8_t> codes(row.size());
  EXPECT_EQ(quantize_int8_row(row, codes).value(), 1.0f);
  EXPECT_THAT(codes, ElementsAre(127, 0, 2, 2, 0, -2, -2, 1, -127));
}

TEST(QuantizeInt8Row, HandlesZerosAndTinyRows) {
  std::vector<int8_t> codes(3, 55);
  EXPECT_EQ(quantize_int8_row(std::vector<float>{0, -0.0f, 0}, codes).value(), 0.0f);
  EXPECT_THAT(codes, ElementsAre(0, 0, 0));
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(quantize_int8_row(std::vector<float>{tiny, 0, -tiny}, codes).value(), 0.0f);
  EXPECT_THAT(codes, ElementsAre(0, 0, 0));
  const auto small = quantize_int8_row(std::vector<float>{100 * tiny, 0, -190 * tiny}, codes);
  EXPECT_EQ(small.value(), tiny);  // 190 / 127 of the smallest subnormal rounds to 1 of it
  EXPECT_THAT(codes, ElementsAre(100, 0, -127));
}

TEST(QuantizeInt8Row, RefusesNanAndInfinity) {
  std::vector<int8_t> codes(2);
  EXPECT_FALSE(quantize_int8_row(std::vector<float>{1, std::nanf("")}, codes).ok());
  EXPECT_FALSE(quantize_int8_row(std::vector<float>{-INFINITY, 1}, codes).ok());
}

struct Pair {
  Pair(WeightFormat format, int64_t out, int64_t in)
      : from_info{format, out, in, 0}, into_info{WeightFormat::int8_row, out, in, 0} {
    buffers[0] = Buffer(host_memory(), plain_bytes(from_info));
    buffers[1] = Buffer(host_memory(), plain_bytes(into_info));
    from = plain_weight(from_info, buffers[0].data());
    into = plain_weight(into_info, buffers[1].data());
  }
  // Rows [first, first + count) of `from`.
  Weight rows(int64_t first, int64_t count) const {
    Weight part = from;
    part.info.out = count;
    part.values = from.values.slice(first, count);
    return part;
  }
  WeightInfo from_info, into_info;
  Buffer buffers[2];
  Weight from, into;
};

TEST(QuantizeInt8Rows, IsWithinHalfAStepForEveryFormat) {
  for (const WeightFormat format : {WeightFormat::f32, WeightFormat::bf16, WeightFormat::f16}) {
    const Pair pair(format, 9, 133);
    std::mt19937 random(7);
    for (int64_t i = 0; i < 9 * 133; ++i) {
      const float value = float(int(random() % 2001) - 1000) / 1024.0f;
      if (format == WeightFormat::f32) {
        pair.from.values.f32()[i] = value;
      } else {
        reinterpret_cast<uint16_t*>(pair.from.values.data)[i] =
            format == WeightFormat::bf16 ? float_to_bf16(value) : float_to_f16(value);
      }
    }
    ASSERT_TRUE(quantize_int8_rows(pair.rows(0, 4), pair.into, 0).ok());
    ASSERT_TRUE(quantize_int8_rows(pair.rows(4, 5), pair.into, 4).ok());
    for (int64_t row = 0; row < 9; ++row) {
      const double step = pair.into.scales.f32()[row];
      for (int64_t i = 0; i < 133; ++i)
        EXPECT_LE(std::fabs(double(weight_at(pair.into, row, i)) - weight_at(pair.from, row, i)),
                  step * (0.5 + 127 * 0x1p-22));
    }
  }
}

TEST(QuantizeInt8Rows, NamesTheBadRow) {
  const Pair pair(WeightFormat::f32, 3, 4);
  pair.from.values.f32()[2 * 4 + 1] = INFINITY;
  const Status status = quantize_int8_rows(pair.rows(1, 2), pair.into, 1);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.failure().message, HasSubstr("row 2: weight holds inf"));
}

}  // namespace
}  // namespace slip
