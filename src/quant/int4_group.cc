#include "quant/int4_group.h"

#include <cmath>
#include <vector>

#include "quant/int4_loops.h"
#include "quant/number_formats.h"
#include "quant/scale_search.h"
#include "quant/widen_row.h"

namespace slip {

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
      const uint16_t bits = best_int4_scale(part);
      const float scale = f16_to_float(bits);
      if (!std::isfinite(scale))
        return error("row ", target, ": weights of ", largest_magnitude(part),
                     " are too large for int4 with f16 scales");
      scales[begin / group] = bits;
      int4_loops().codes(part.data(), part.size(), scale, codes + begin / 2);
    }
  }
  return {};
}

}  // namespace slip
