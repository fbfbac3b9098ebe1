#include "quant/widen_row.h"

#include <algorithm>
#include <bit>

#include "quant/number_formats.h"

namespace slip {

bool is_plain_float(WeightFormat format) {
  switch (format) {
    case WeightFormat::f32:
    case WeightFormat::bf16:
    case WeightFormat::f16: return true;
    case WeightFormat::fp8_block:
    case WeightFormat::int8_row:
    case WeightFormat::int4_group: return false;
  }
  unreachable("WeightFormat");
}

void widen_row(const Weight& weight, int64_t row, std::span<float> values) {
  check(!weight.packed && int64_t(values.size()) == weight.info.in, "widen_row: ", values.size(),
        " values for ", weight.info.in, " inputs");
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

float largest_magnitude(std::span<const float> values) {
  // Magnitudes of floats are ordered as their bits are, infinity and NaN last.
  uint32_t largest = 0;
  for (const float value : values)
    largest = std::max(largest, std::bit_cast<uint32_t>(value) & 0x7fffffffu);
  return std::bit_cast<float>(largest);
}

}  // namespace slip
