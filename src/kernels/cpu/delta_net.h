// Scratch of the delta rule: the state of a strip of columns, and normalised queries and keys of a
// few rows at a time.
#pragma once

#include <cstdint>

namespace slip {

// Rows whose queries and keys are prepared together; they stay in the first-level cache with a
// strip of the state.
inline constexpr int64_t kDeltaRows = 16;
inline constexpr int64_t kDeltaColumns = 64;  // per item
inline constexpr int64_t kMaxKeyDim = 512;

constexpr int64_t delta_scratch_values() {
  return kMaxKeyDim * kDeltaColumns + kDeltaRows * (2 * kMaxKeyDim + 3);
}

}  // namespace slip
