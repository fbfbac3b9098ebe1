// A row, normed on its way into whatever multiplies it: to the bit as by rms_norm().
#pragma once

#include "kernels/cuda/linear.h"
#include "kernels/cuda/row_norm.cuh"

namespace slip {

// What a warp has of the row: slabs warp, warp + kWarps, ..., kAtOnce of them or fewer.
template <int kWarps, int kAtOnce>
struct NormedRow {
  float4 x[kAtOnce];

  __device__ static int slab(int i) { return int(threadIdx.x) / kWarp + i * kWarps; }
  __device__ static int column(int i) {
    return slab(i) * kNormSlab + int(threadIdx.x) % kWarp * kQuad;
  }

  // The whole block. The first one leaves the row in norm.out. `squares` (shared) has room for a
  // float per slab. Calls asked() when the row is on its way.
  template <class Asked>
  __device__ __forceinline__ NormedRow(const LinearInput& input, int64_t row,
                                       const LinearNorm& norm, float* squares, const Asked& asked) {
    const int in = int(input.in), slabs = (in + kNormSlab - 1) / kNormSlab;
    float4 scales[kAtOnce];  // asked for before the row is there
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      scales[i] = norm.scale ? load_quad<true>(norm.scale, column(i), in) : make_float4(1, 1, 1, 1);
    wait_for_inputs();
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) x[i] = load_quad<true>(input.x + row * in, column(i), in);
    asked();
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const float sum = slab_squares(x[i]);
      if (threadIdx.x % kWarp == 0 && slab(i) < slabs) squares[slab(i)] = sum;
    }
    __syncthreads();
    const float inverse = inverse_rms(row_squares(squares, slabs), in, norm.eps);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) x[i] = scaled(x[i], inverse, scales[i]);
    if (blockIdx.x != 0) return;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) store_quad<true>(norm.out + row * in, column(i), in, x[i]);
  }
};

}  // namespace slip
