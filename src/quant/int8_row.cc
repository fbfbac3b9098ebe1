#include "quant/int8_row.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "quant/number_formats.h"

namespace slip {
namespace {

// To the nearest integer, ties to even, for |x| < 2^22: the sum has no room for a fraction. Unlike
// std::nearbyint it is two additions that the compiler vectorises.
float round_half_to_even(float x) {
  constexpr float kShift = 0x1.8p23f;
  return (x + kShift) - kShift;
}

void read_row(const Weight& weight, int64_t row, std::span<float> values) {
  const int64_t at = row * weight.info.in;
  switch (weight.info.format) {
    case WeightFormat::f32: {
      const float* stored = weight.values.f32() + at;
      std::copy(stored, stored + values.size(), values.begin());
      return;
    }
    case WeightFormat::bf16: {
      const uint16_t* stored = weight.values.as<uint16_t>(DType::bf16) + at;
      for (size_t i = 0; i < values.size(); ++i) values[i] = bf16_to_float(stored[i]);
      return;
    }
    case WeightFormat::f16: {
      const uint16_t* stored = weight.values.as<uint16_t>(DType::f16) + at;
      for (size_t i = 0; i < values.size(); ++i) values[i] = f16_to_float(stored[i]);
      return;
    }
    case WeightFormat::fp8_block:
    case WeightFormat::int8_row:
    case WeightFormat::int4_group: break;
  }
  unreachable("a 16- or 32-bit WeightFormat");
}

}  // namespace

Result<float> quantize_int8_row(std::span<const float> row, std::span<int8_t> codes) {
  check(row.size() == codes.size(), "quantize_int8_row: ", row.size(), " values, ", codes.size(),
        " codes");
  // Magnitudes of floats are ordered as their bits are, infinity and NaN last.
  uint32_t largest_bits = 0;
  for (const float value : row)
    largest_bits = std::max(largest_bits, std::bit_cast<uint32_t>(value) & 0x7fffffffu);
  const float largest = std::bit_cast<float>(largest_bits);
  if (!std::isfinite(largest)) return error("weight holds ", largest);
  const float scale = largest / 127.0f;
  if (scale == 0) {  // zeros, or so small that the scale underflows
    std::fill(codes.begin(), codes.end(), int8_t{0});
    return 0.0f;
  }
  for (size_t i = 0; i < row.size(); ++i) {
    // The clamp matters for subnormal scales only, which are off by up to half their value.
    const float code = round_half_to_even(row[i] / scale);
    codes[i] = int8_t(std::clamp(code, -127.0f, 127.0f));
  }
  return scale;
}

Status quantize_int8_rows(const Weight& from, const Weight& into, int64_t first_row, int64_t rows) {
  check(!from.packed && !into.packed && into.info.format == WeightFormat::int8_row,
        "quantize_int8_rows reads and writes plain weights");
  check(from.info.out == into.info.out && from.info.in == into.info.in,
        "quantize_int8_rows: ", from.info.out, " x ", from.info.in, " into ", into.info.out, " x ",
        into.info.in);
  check(first_row >= 0 && rows >= 0 && first_row + rows <= from.info.out, "rows [", first_row, ", ",
        first_row + rows, ") of ", from.info.out);
  const size_t in = size_t(from.info.in);
  std::vector<float> values(in);
  for (int64_t row = first_row; row < first_row + rows; ++row) {
    read_row(from, row, values);
    int8_t* codes = into.values.as<int8_t>(DType::i8) + row * from.info.in;
    auto scale = quantize_int8_row(values, {codes, in});
    if (!scale.ok()) return std::move(scale).failure().in(cat("row ", row));
    into.scales.f32()[row] = scale.value();
  }
  return {};
}

}  // namespace slip
