// What several blocks have computed is added up by the last of them, instead of by a launch of its
// own.
#pragma once

#include <cstdint>

#include "kernels/cuda/device/instructions.cuh"

namespace slip {

// Whether this block is the last of `blocks` that share the counter. What the others wrote before
// they came here is then to be seen, past the first-level cache.
__device__ __forceinline__ bool finishes_last(uint32_t& counter, uint32_t blocks) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    last = count_arrival(counter) == blocks - 1;
    if (last) counter = 0;  // for the next launch
  }
  __syncthreads();
  return last;
}

}  // namespace slip
