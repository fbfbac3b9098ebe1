#include "quant/int4_group.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "quant/number_formats.h"
#include "quant/widen_row.h"

namespace slip {
namespace {

// Codes are -8 .. 7: the side with eight steps goes to the largest value, or a little inside it.
constexpr std::array<float, 6> kReach = {1.0f, 0.95f, 0.9f, 0.85f, 0.8f, 0.75f};

int code_of(float value, float inverse) {
  return int(std::clamp(std::nearbyint(value * inverse), -8.0f, 7.0f));
}

float squared_error(std::span<const float> group, float scale) {
  const float inverse = 1.0f / scale;
  float error = 0;
  for (const float value : group) {
    const float difference = value - float(code_of(value, inverse)) * scale;
    error += difference * difference;
  }
  return error;
}

// As stored: f16 bits.
uint16_t best_scale(std::span<const float> group) {
  float peak = 0;
  for (const float value : group)
    if (std::fabs(value) > std::fabs(peak)) peak = value;
  uint16_t best = 0;
  float least = INFINITY;
  for (const float reach : kReach) {
    for (const float steps : {-8.0f, 7.0f}) {
      const uint16_t bits = float_to_f16(reach * peak / steps);
      const float scale = f16_to_float(bits);
      if (scale == 0 || std::isinf(scale)) continue;
      const float error = squared_error(group, scale);
      if (error < least) {
        least = error;
        best = bits;
      }
    }
  }
  return best;
}

}  // namespace

int int4_group_for(int64_t in) {
  for (const int group : {128, 64, 32})
    if (in % group == 0) return group;
  return 0;
}

Status quantize_int4_groups(const Weight& from, const Weight& into, int64_t first_row) {
  const int64_t in = from.info.in, group = into.info.group;
  check(!from.packed && !into.packed && into.info.format == WeightFormat::int4_group,
        "quantize_int4_groups reads and writes plain weights");
  check(in == into.info.in && first_row >= 0 && first_row + from.info.out <= into.info.out,
        "quantize_int4_groups: ", from.info.out, " x ", in, " at row ", first_row, " of ",
        into.info.out, " x ", into.info.in);
  std::vector<float> values(static_cast<size_t>(in));
  for (int64_t row = 0; row < from.info.out; ++row) {
    widen_row(from, row, values);
    const int64_t target = first_row + row;
    if (!std::isfinite(largest_magnitude(values)))
      return error("row ", target, ": weight holds infinity or NaN");
    auto* codes = into.values.as<uint8_t>(DType::u8) + target * in / 2;
    auto* scales = into.scales.as<uint16_t>(DType::f16) + target * (in / group);
    for (int64_t begin = 0; begin < in; begin += group) {
      const std::span<const float> part(values.data() + begin, size_t(group));
      const uint16_t bits = best_scale(part);
      const float scale = f16_to_float(bits);
      const float inverse = scale == 0 ? 0 : 1.0f / scale;
      scales[begin / group] = bits;
      for (int64_t i = 0; i < group; i += 2) {
        const int low = code_of(part[size_t(i)], inverse) + 8;
        const int high = code_of(part[size_t(i + 1)], inverse) + 8;
        codes[(begin + i) / 2] = uint8_t(low | high << 4);
      }
    }
  }
  return {};
}

}  // namespace slip
