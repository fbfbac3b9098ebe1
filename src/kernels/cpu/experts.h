// Scratch of the mixture of experts.
#pragma once

#include "kernels/cpu/simd/loops.h"
#include "kernels/ops.h"

namespace slip {

// Blocks of 16 outputs per work item of the two stages.
inline constexpr int64_t kExpertBlocks = 4;

// Per thread: the `up` half of a tile, or the outputs of every (row, expert) pair for one item.
constexpr int64_t expert_scratch_values(const StepLimits& limits) {
  return limits.rows * (limits.top_k + 1) * kExpertBlocks * kLanes;
}

}  // namespace slip
