// The causal convolution of some channels: they need none of the others.
#pragma once

#include "kernels/cpu/simd/loops.h"
#include "kernels/ops.h"

namespace slip {

// All rows of one span for channels [first, first + count), and their tail. Shapes were checked.
void convolve_channels(const CausalConvArgs& args, const Span& span, int64_t first, int64_t count,
                       const Loops& loops);

}  // namespace slip
