#include "quant/int8_row.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "quant/widen_row.h"

namespace slip {
namespace {

// To the nearest integer, ties to even, for |x| < 2^22: the sum has no room for a fraction. Unlike
// std::nearbyint it is two additions that the compiler vectorises.
float round_half_to_even(float x) {
  constexpr float kShift = 0x1.8p23f;
  return (x + kShift) - kShift;
}

}  // namespace

Result<float> quantize_int8_row(std::span<const float> row, std::span<int8_t> codes) {
  check(row.size() == codes.size(), "quantize_int8_row: ", row.size(), " values, ", codes.size(),
        " codes");
  const float largest = largest_magnitude(row);
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

Status quantize_int8_rows(const Weight& from, const Weight& into, int64_t first_row) {
  check(!from.packed && !into.packed && into.info.format == WeightFormat::int8_row,
        "quantize_int8_rows reads and writes plain weights");
  check(
      from.info.in == into.info.in && first_row >= 0 && first_row + from.info.out <= into.info.out,
      "quantize_int8_rows: ", from.info.out, " x ", from.info.in, " at row ", first_row, " of ",
      into.info.out, " x ", into.info.in);
  const auto in = size_t(from.info.in);
  std::vector<float> values(in);
  for (int64_t row = 0; row < from.info.out; ++row) {
    widen_row(from, row, values);
    const int64_t target = first_row + row;
    int8_t* codes = into.values.as<int8_t>(DType::i8) + target * from.info.in;
    auto scale = quantize_int8_row(values, {codes, in});
    if (!scale.ok()) return std::move(scale).failure().in(cat("row ", target));
    into.scales.f32()[target] = scale.value();
  }
  return {};
}

}  // namespace slip
