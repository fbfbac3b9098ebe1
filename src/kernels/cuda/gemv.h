// What launches of linear layers of few rows share among each other.
#pragma once

#include "kernels/cuda/linear.h"

namespace slip::gemv {

// Floats of the usual kind can go beside weights in slabs, a pair of outputs to a block.
inline bool takes_floats_beside(const LinearJobs& floats, int blocks, bool add) {
  return floats.count > 0 && floats.units <= blocks && all_bf16(floats) && !add;
}

// Slabs that are all int4 in groups of 128 (gemv_int4.cu), or of any kind (gemv.cu). Whether
// `floats` went with them.
bool int4_few_rows(const Launcher& launcher, const LinearInput& input, const LinearNorm& norm,
                   const LinearJobs& slabs, const LinearJobs& floats, bool add);

}  // namespace slip::gemv
