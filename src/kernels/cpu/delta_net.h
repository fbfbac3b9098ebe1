// Scratch of the delta rule: normalised queries and keys of a few rows at a time.
#pragma once

#include <cstdint>

namespace slip {

// Rows whose queries and keys are prepared together; they stay in the first-level cache with a
// strip of the state.
inline constexpr int64_t kDeltaRows = 16;
inline constexpr int64_t kMaxKeyDim = 512;

constexpr int64_t delta_scratch_values() { return kDeltaRows * (2 * kMaxKeyDim + 2); }

}  // namespace slip
