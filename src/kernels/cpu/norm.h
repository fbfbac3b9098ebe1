// The gated norm of one head of one row.
#pragma once

#include "kernels/cpu/simd/loops.h"
#include "kernels/ops.h"

namespace slip {

// Shapes were checked.
inline void gated_norm_head(const GatedRmsNormArgs& args, int64_t row, int64_t head,
                            const Loops& loops) {
  const int64_t heads = args.x.shape[1], dim = args.x.shape[2];
  const int64_t offset = (row * heads + head) * dim;
  loops.gated_rms_norm(args.x.f32() + offset, args.gate.f32() + offset, args.scale.f32(), dim,
                       args.eps, args.out.f32() + offset);
}

}  // namespace slip
