// Tensor-core products of weights in slabs (weight_tiles.h) with rounded activations.
//
// Activations are rounded to f16, each slab of 128 inputs of a row in units of a power of two of
// its own, so that nothing overflows and small integers stay exact. The columns of the instruction
// are rows of the step: eight at a time cost what one does, and none depends on another.
#pragma once

#include "kernels/cuda/device/warp.cuh"
#include "kernels/cuda/device/weight_tiles.h"

namespace slip {

inline constexpr int kStepsPerSlab = 8;
inline constexpr int kMmaRows = 8;  // rows of a step that one instruction takes

// 16 outputs x 16 inputs, a lane's part: [0] output l / 4, inputs 0 1; [1] output + 8, inputs 0 1;
// [2] output, inputs 2 3; [3] output + 8, inputs 2 3.
struct WeightFragment {
  uint32_t r[4];
};

// Sums of a lane: [0] output l / 4, row 2 (l % 4); [1] the next row; [2] [3] the same, output + 8.
struct Sums {
  float v[4] = {0, 0, 0, 0};
};

// inputs01, inputs23: f16 pairs of row l / 4.
__device__ __forceinline__ void mma(Sums& sums, const WeightFragment& w, uint32_t inputs01,
                                    uint32_t inputs23) {
  mma_f16(sums.v, w.r, inputs01, inputs23);
}

// The same of bf16.
__device__ __forceinline__ void mma_bf16(Sums& sums, const WeightFragment& w, uint32_t inputs01,
                                         uint32_t inputs23) {
  mma_bf16(sums.v, w.r, inputs01, inputs23);
}

__device__ __forceinline__ uint32_t half2_bits(__half2 x) {
  return *reinterpret_cast<const uint32_t*>(&x);
}
__device__ __forceinline__ __half2 bits_half2(uint32_t x) {
  return *reinterpret_cast<const __half2*>(&x);
}

// Word of step s: codes minus eight. 0x6400 is 1024 in f16, whose last bits count ones.
__device__ __forceinline__ WeightFragment unpack_int4(uint32_t word) {
  const __half2 minus = __half2half2(__ushort_as_half(0xe408));  // -1032
  const __half2 sixteenth = __half2half2(__ushort_as_half(0x2c00));
  const __half2 minus_high = __half2half2(__ushort_as_half(0xd480));  // -72
  const auto low = [&](uint32_t w) {
    return half2_bits(__hadd2(bits_half2(masked_or(w, 0x000f000f, 0x64006400)), minus));
  };
  const auto high = [&](uint32_t w) {  // the nibbles above them: 1024 + 16 code
    return half2_bits(
        __hfma2(bits_half2(masked_or(w, 0x00f000f0, 0x64006400)), sixteenth, minus_high));
  };
  return {{low(word), high(word), low(word >> 8), high(word >> 8)}};
}

// 64-bit word of step s, signed bytes.
__device__ __forceinline__ WeightFragment unpack_int8(uint2 word) {
  const __half2 minus = __half2half2(__ushort_as_half(0xe480));  // -1152 = -(1024 + 128)
  const auto pair = [&](uint32_t bytes, uint32_t selector) {
    return half2_bits(
        __hadd2(bits_half2(__byte_perm(bytes ^ 0x80808080, 0x64646464, selector)), minus));
  };
  return {{pair(word.x, 0x4140), pair(word.y, 0x4140), pair(word.x, 0x4342), pair(word.y, 0x4342)}};
}

// e4m3 as value / 256: its bits at an f16's places. The caller makes up for it (kFp8Factor).
inline constexpr float kFp8Factor = 256.0f;
__device__ __forceinline__ WeightFragment unpack_fp8(uint2 word) {
  const auto pair = [](uint32_t bytes, uint32_t selector) {
    const uint32_t wide = __byte_perm(bytes, 0, selector);  // each byte the upper of 16 bits
    return ((wide >> 1) & 0x3f803f80) | (wide & 0x80008000);
  };
  return {{pair(word.x, 0x1404), pair(word.y, 0x1404), pair(word.x, 0x3424), pair(word.y, 0x3424)}};
}

// Activations of one slab as lanes take them. For pair p (0..3) of steps 2p and 2p + 1, row n and
// quarter j: 8 halves, inputs 32 p + 4 j + {0..3} and 32 p + 16 + 4 j + {0..3}. A slab of R rows is
// [4 pairs][R rows][4 quarters] of these 16 bytes.
__device__ __forceinline__ int slab_offset(int pair, int row, int quarter, int rows) {
  return ((pair * rows + row) * 4 + quarter) * 16;  // bytes
}
inline constexpr int slab_input_bytes(int rows) { return rows * kSlabIn * 2; }

// A power of two at most 2 below the largest magnitude, and its inverse; 1 where there is nothing.
struct PowerScale {
  float scale, inverse;
};
__device__ __forceinline__ PowerScale power_scale(float largest) {
  uint32_t exponent = __float_as_uint(largest) >> 23;
  exponent = min(max(exponent, 1u), 253u);
  if (largest == 0) exponent = 127;
  return {__uint_as_float(exponent << 23), __uint_as_float((254 - exponent) << 23)};
}

// One warp rounds one slab of one row: lane l brings inputs 4 l .. 4 l + 3 (zero past the end).
// Writes 8 bytes to `slab` and returns the slab's unit.
__device__ __forceinline__ float round_slab(float4 x, int row, int rows, std::byte* slab) {
  const int lane = int(threadIdx.x) % kWarp;
  const float largest =
      warp_max(fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w))));
  const PowerScale unit = power_scale(largest);
  const __half2 a = __floats2half2_rn(x.x * unit.inverse, x.y * unit.inverse);
  const __half2 b = __floats2half2_rn(x.z * unit.inverse, x.w * unit.inverse);
  const int step = lane / 4, quarter = lane % 4;
  *reinterpret_cast<uint2*>(slab + slab_offset(step / 2, row, quarter, rows) + step % 2 * 8) =
      make_uint2(half2_bits(a), half2_bits(b));
  return unit.scale;
}

}  // namespace slip
