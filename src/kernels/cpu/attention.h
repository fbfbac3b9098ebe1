// Sizes of what attention keeps between pages.
#pragma once

#include "kernels/ops.h"

namespace slip {

// A context is cut into segments at fixed absolute positions. Each is summed on its own and merged
// in order, so that threads may share a long context and the result stays the same.
inline constexpr int64_t kSegmentLen = 1024;

// Steps of at most this many rows (decode, verify) share their segments among threads.
inline constexpr int64_t kSplitRows = 9;

// Queries (rows x heads of one kv head) that walk over the pages together.
inline constexpr int64_t kMaxQueries = kSplitRows * 16;

// Per thread: queries, room to unpack codes, outputs of a segment and of all segments.
int64_t attention_scratch_values(const StepLimits& limits);

// For split steps: maximum, denominator and output per query and segment.
int64_t attention_partial_values(const StepLimits& limits);

}  // namespace slip
