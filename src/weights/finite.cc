#include "weights/finite.h"

#include <algorithm>
#include <limits>

namespace slip {
namespace {

template <class Bits>
constexpr Bits kMagnitude = std::numeric_limits<Bits>::max();

// Without its sign, a float's bits are an integer that grows with it: nothing finite reaches those
// of infinity. Runs are of fixed length so that they become vector instructions.
template <class Bits>
std::optional<int64_t> first_from(const Bits* values, int64_t count, Bits infinity) {
  constexpr int64_t kRun = 1024;
  const auto is_finite = [=](Bits bits) { return Bits(bits & kMagnitude<Bits>) < infinity; };
  for (int64_t begin = 0; begin < count; begin += kRun) {
    const Bits* run = values + begin;
    if (count - begin >= kRun) {
      Bits largest = 0;
      for (int64_t i = 0; i < kRun; ++i)
        largest = std::max(largest, Bits(run[i] & kMagnitude<Bits>));
      if (largest < infinity) continue;
    }
    const Bits* end = run + std::min(kRun, count - begin);
    if (const Bits* bad = std::find_if_not(run, end, is_finite); bad != end) return bad - values;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> first_not_finite(const View& values) {
  const int64_t count = values.shape.count();
  if (values.dtype == DType::bf16)
    return first_from<int16_t>(values.as<int16_t>(DType::bf16), count, 0x7f80);
  if (values.dtype == DType::f16)
    return first_from<int16_t>(values.as<int16_t>(DType::f16), count, 0x7c00);
  return first_from<int32_t>(values.as<int32_t>(DType::f32), count, 0x7f800000);
}

}  // namespace slip
