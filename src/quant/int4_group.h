// Rounding to int4 with a scale per group: each group takes the scale, of either sign, that leaves
// the smallest squared error (scale_search.h), each weight the nearest code.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "quant/weight.h"

namespace slip {

// The largest group that fits a matrix with this many inputs; 0: none does.
int int4_group_for(int64_t in);

// A plain f32, bf16 or f16 weight into rows [first_row, first_row + rows of it) of a plain
// int4_group weight. Refuses NaN and infinity.
Status quantize_int4_groups(const Weight& from, const Weight& into, int64_t first_row);

}  // namespace slip
