// The vocabulary that kernels share: waiting, warps, vectors, number formats.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/device/instructions.cuh"

namespace slip {

inline constexpr int kWarp = 32;
inline constexpr int kLineBytes = 128;  // of a cache

// Asks for `bytes` to be brought closer; thread `thread` of `threads` that share the work.
__device__ __forceinline__ void prefetch_bytes(const std::byte* from, int64_t bytes, int thread,
                                               int threads) {
#pragma unroll 1
  for (int64_t at = int64_t(thread) * kLineBytes; at < bytes; at += int64_t(threads) * kLineBytes)
    prefetch_line(from + at);
}

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, offset));
  return x;
}

// Sum over the block, the same order whatever runs beside it; every thread gets it. `shared` has
// room for a float per warp. Blocks are whole warps.
__device__ __forceinline__ float block_sum(float x, float* shared) {
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
  const int warps = int(blockDim.x) / kWarp;
  x = warp_sum(x);
  __syncthreads();  // `shared` may still be read from the last call
  if (lane == 0) shared[warp] = x;
  __syncthreads();
  float total = 0;
  for (int i = 0; i < warps; ++i) total += shared[i];
  return total;
}

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }
__device__ __forceinline__ float gelu_tanh(float x) {
  constexpr float kRoot = 0.7978845608f;  // sqrt(2 / pi)
  return 0.5f * x * (1.0f + tanhf(kRoot * fmaf(0.044715f * x * x, x, x)));
}
__device__ __forceinline__ float activated(float x, bool gelu) {
  return gelu ? gelu_tanh(x) : silu(x);
}

__device__ __forceinline__ float bf16_value(uint16_t bits) {
  return __uint_as_float(uint32_t(bits) << 16);
}
__device__ __forceinline__ uint16_t bf16_bits(float x) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}

}  // namespace slip
