// Products of int4 weights in groups of 128 or 64 with activations in two bytes, on integer tensor
// cores. A slab has one group, or one in each half.
//
// Steps of few rows are bound by the instructions that unpack weights: the codes of a word become
// operands of mma.m16n8k32 by two masks, where f16 takes nine instructions. A slab of a row's
// activations becomes integers of up to 14 bits in units of a power of two, and each integer two
// signed bytes, 256 high + low. They are two columns of the instruction, which has eight: four rows
// cost what one does. Sums are exact.
#pragma once

#include "kernels/cuda/slab_formats.cuh"

namespace slip {

inline constexpr int kIntegerRows = 4;  // rows of a step that one instruction takes

// What is known of a slab of a row: activation = unit * integer, and the sums of the integers that
// meet a group of weights.
template <int kGroups>
struct IntegerSlabOf {
  float unit;
  int32_t sums[kGroups];
};
using IntegerSlab = IntegerSlabOf<1>;

// Bytes of a slab of R rows: [2 halves][2 R columns][4 quarters] of 16 bytes. Column 2 r is the
// high bytes of row r, 2 r + 1 the low ones; the 16 bytes are inputs 4 j .. 4 j + 3 of four steps,
// in the order 0 2 1 3, in which nibbles lie (weight_tiles.h).
__device__ __forceinline__ int integer_offset(int half, int column, int quarter, int rows) {
  return ((half * 2 * rows + column) * 4 + quarter) * 16;
}

// One warp, one slab of one row: lane l brings inputs 4 l .. 4 l + 3 (zero past the end).
template <int kGroups = 1>
__device__ __forceinline__ IntegerSlabOf<kGroups> round_to_integers(float4 x, int row, int rows,
                                                                    std::byte* slab) {
  const uint32_t largest = __reduce_max_sync(
      ~0u, __float_as_uint(fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w)))));
  // 2^13 units are the power of two below the largest. Below 2^-113 everything is zero.
  const uint32_t exponent = min(max(largest >> 23, 14u), 254u);
  const float inverse = __uint_as_float((267 - exponent) << 23);
  const int q[4] = {__float2int_rn(x.x * inverse), __float2int_rn(x.y * inverse),
                    __float2int_rn(x.z * inverse), __float2int_rn(x.w * inverse)};
  uint32_t high[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) high[i] = uint32_t(q[i] + 128) >> 8;  // its last byte
  const auto pack = [](uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return __byte_perm(__byte_perm(a, c, 0x0040), __byte_perm(b, d, 0x0040), 0x5410);
  };
  const int lane = int(threadIdx.x) % kWarp, step = lane / 4, quarter = lane % 4;
  std::byte* to = slab + integer_offset(step / 4, 2 * row, quarter, rows) + step % 4 * 4;
  *reinterpret_cast<uint32_t*>(to) = pack(high[0], high[1], high[2], high[3]);
  *reinterpret_cast<uint32_t*>(to + 64) =
      pack(uint32_t(q[0]), uint32_t(q[1]), uint32_t(q[2]), uint32_t(q[3]));
  // Not a number, or infinite: no integer says so, the unit does.
  const float unit = largest >= 0x7f800000u ? __uint_as_float(0x7fffffffu)
                                            : __uint_as_float((exponent - 13) << 23);
  const int sum = __reduce_add_sync(~0u, q[0] + q[1] + q[2] + q[3]);
  if constexpr (kGroups == 1) {
    return {unit, {sum}};
  } else {
    const int first = __reduce_add_sync(~0u, lane < kWarp / 2 ? q[0] + q[1] + q[2] + q[3] : 0);
    return {unit, {first, sum - first}};
  }
}

// Where a lane finds its part of a slab's inputs, four rows in each of kTiles. Rows past the last
// are copies of it: their sums are not written.
template <int kTiles>
struct IntegerLanes {
  int inputs[kTiles];  // bytes from the slab's start
  int half_bytes;
  int sum_rows[kTiles];

  __device__ explicit IntegerLanes(int rows) {
    const int lane = int(threadIdx.x) % kWarp;
    half_bytes = integer_offset(1, 0, 0, rows);
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      inputs[t] = integer_offset(0, min(t * kMmaRows + lane / 4, 2 * rows - 1), lane % 4, rows);
      sum_rows[t] = min(t * kIntegerRows + lane % 4, rows - 1);
    }
  }
};

// Those of a lane's outputs, l / 4 and l / 4 + 8; the second for sums of 16 times the codes.
__device__ __forceinline__ float2 int4_scales(float2 scales) {
  return make_float2(scales.x, scales.y * (1.0f / 16));
}

// A slab's share in outputs l / 4 and l / 4 + 8 of one row, whose columns are the lane's of the
// sums. x: the lane's inputs of both halves.
template <int kGroups>
__device__ __forceinline__ float2 int4_slab_values(const uint32_t (&words)[Int4Slab::kWords],
                                                   const uint4 (&x)[2],
                                                   const float2 (&scales)[kGroups],
                                                   const IntegerSlabOf<kGroups>& row) {
  constexpr uint32_t kLow = 0x0f0f0f0f, kHigh = 0xf0f0f0f0;  // 16 times the code, output + 8
  int sums[2][4] = {};  // of halves: an instruction waits for the one whose sums it adds to
#pragma unroll
  for (int step = 0; step < 4; step += 2)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t* w = words + half * 4 + step;
      mma_bytes(sums[half], w[0] & kLow, w[0] & kHigh, w[1] & kLow, w[1] & kHigh,
                step == 0 ? x[half].x : x[half].z, step == 0 ? x[half].y : x[half].w);
    }
  const auto of_group = [&](int group, int i) {
    return kGroups == 1 ? sums[0][i] + sums[1][i] : sums[group][i];
  };
  float2 values;
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const int low = of_group(group, 0) * 256 + of_group(group, 1) - 8 * row.sums[group];
    const int high = of_group(group, 2) * 256 + of_group(group, 3) - 128 * row.sums[group];
    const float2 units =
        make_float2(__fmul_rn(scales[group].x, row.unit), __fmul_rn(scales[group].y, row.unit));
    const float2 part = make_float2(__fmul_rn(__int2float_rn(low), units.x),
                                    __fmul_rn(__int2float_rn(high), units.y));
    values =
        group == 0 ? part : make_float2(__fadd_rn(values.x, part.x), __fadd_rn(values.y, part.y));
  }
  return values;
}

// totals[t]: outputs l / 4 and l / 4 + 8 of row 4 t + l % 4, to which those of one slab are added.
template <int kTiles>
__device__ __forceinline__ void add_int4_slab(float2 (&totals)[kTiles], const std::byte* slab,
                                              const std::byte* inputs, const IntegerSlab* rows,
                                              const IntegerLanes<kTiles>& lanes) {
  uint32_t words[Int4Slab::kWords];
  load_lane_words(slab, 0, words);
  const float2 scales[] = {int4_scales(lane_scales(slab + slab_bytes(WeightFormat::int4_group)))};
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    uint4 x[2];
#pragma unroll
    for (int half = 0; half < 2; ++half)
      x[half] = *reinterpret_cast<const uint4*>(inputs + lanes.inputs[t] + half * lanes.half_bytes);
    const float2 values = int4_slab_values(words, x, scales, rows[lanes.sum_rows[t]]);
    totals[t].x += values.x;
    totals[t].y += values.y;
  }
}

}  // namespace slip
