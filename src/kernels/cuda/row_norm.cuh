// RMS norms of rows, by whichever kernel: squares are summed slab by slab of 128 values, and the
// sums of slabs by one warp, so that all kernels agree to the bit.
#pragma once

#include "kernels/cuda/device/warp.cuh"
#include "kernels/cuda/quads.cuh"

namespace slip {

inline constexpr int kNormSlab = kWarp * kQuad;

__device__ __forceinline__ float add_squares(float sum, float4 x) {
  return fmaf(x.w, x.w, fmaf(x.z, x.z, fmaf(x.y, x.y, fmaf(x.x, x.x, sum))));
}

// Of a slab, four values of which each lane has.
__device__ __forceinline__ float slab_squares(float4 x) { return warp_sum(add_squares(0, x)); }

// A whole warp; every lane gets the sum.
__device__ __forceinline__ float row_squares(const float* of_slabs, int slabs) {
  float sum = 0;
#pragma unroll 1
  for (int slab = int(threadIdx.x) % kWarp; slab < slabs; slab += kWarp) sum += of_slabs[slab];
  return warp_sum(sum);
}

__device__ __forceinline__ float inverse_rms(float squares, int64_t dim, float eps) {
  return 1.0f / sqrtf(squares / float(dim) + eps);
}

__device__ __forceinline__ float4 gated(float4 x, float4 gate) {
  return make_float4(x.x * silu(gate.x), x.y * silu(gate.y), x.z * silu(gate.z),
                     x.w * silu(gate.w));
}

__device__ __forceinline__ float4 scaled(float4 x, float factor, float4 scale) {
  return make_float4(x.x * factor * scale.x, x.y * factor * scale.y, x.z * factor * scale.z,
                     x.w * factor * scale.w);
}

// Each rounded, whatever they are of: no kernel makes one operation of two.
__device__ __forceinline__ float4 sum_of(float4 a, float4 b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z),
                     __fadd_rn(a.w, b.w));
}
__device__ __forceinline__ float4 product_of(float factor, float4 x) {
  return make_float4(__fmul_rn(factor, x.x), __fmul_rn(factor, x.y), __fmul_rn(factor, x.z),
                     __fmul_rn(factor, x.w));
}

}  // namespace slip
