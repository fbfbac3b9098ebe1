// Products of int4 weights in groups of 128 or 64 with activations in two bytes, on integer tensor
// cores. A slab has one group, or one in each half.
//
// Steps of few rows are bound by the instructions that unpack weights: the codes of a word become
// operands of mma.m16n8k32 by one mask or two, where f16 takes nine instructions. A slab of a row's
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
struct alignas(kGroups == 1 ? 8 : 4) IntegerSlabOf {
  float unit;
  int32_t sums[kGroups];
};
using IntegerSlab = IntegerSlabOf<1>;

// At once, where that is possible.
__device__ __forceinline__ IntegerSlab load_integers(const IntegerSlab* from) {
  const int2 both = *reinterpret_cast<const int2*>(from);
  return {__int_as_float(both.x), {both.y}};
}
__device__ __forceinline__ IntegerSlabOf<2> load_integers(const IntegerSlabOf<2>* from) {
  return *from;
}

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

// A lane's part of a slab.
template <int kGroups>
struct Int4Words {
  static constexpr int kBytes = slab_bytes(DeviceFormat::int4_group);  // of the slab
  static constexpr int kScaleBytes = kGroups * kTileOut * int(sizeof(uint16_t));
  uint4 halves[2];
  uint32_t scales[kGroups];

  // values, scales: of the slab, the lane's.
  __device__ __forceinline__ void load(const std::byte* from_values, const std::byte* from_scales) {
    halves[0] = load_stream(from_values);
    halves[1] = load_stream(from_values + kWarp * sizeof(uint4));
#pragma unroll
    for (int group = 0; group < kGroups; ++group)
      scales[group] =
          __ldg(reinterpret_cast<const uint32_t*>(from_scales + group * (kScaleBytes / kGroups)));
  }
  __device__ __forceinline__ void load_shared(const std::byte* from_values,
                                              const std::byte* from_scales) {
    halves[0] = *reinterpret_cast<const uint4*>(from_values);
    halves[1] = *reinterpret_cast<const uint4*>(from_values + kWarp * sizeof(uint4));
#pragma unroll
    for (int group = 0; group < kGroups; ++group)
      scales[group] =
          *reinterpret_cast<const uint32_t*>(from_scales + group * (kScaleBytes / kGroups));
  }
  __device__ static int lane_values() { return int(threadIdx.x) % kWarp * int(sizeof(uint4)); }
  __device__ static int lane_scales() {
    return int(threadIdx.x) % kWarp / 4 * int(sizeof(uint32_t));
  }
};

// Adds a slab's share to outputs l / 4 and l / 4 + 8 of one row, whose columns are the lane's of
// the sums. x: the lane's inputs of both halves. kChains: an instruction waits for the one whose
// sums it adds to, which costs more than an addition where there is nothing else to do.
//
// The lower eight outputs of the instruction take the codes of a word's low nibbles. The upper ones
// take 16 times the codes of its high nibbles, or whole bytes, from whose sums the lower outputs'
// come off: a mask less, where there are registers for words as they are.
template <int kGroups, int kChains = 2, bool kWholeBytes = true>
__device__ __forceinline__ void add_int4_slab(float2& total, const Int4Words<kGroups>& slab,
                                              const uint4 (&x)[2],
                                              const IntegerSlabOf<kGroups>& row) {
  constexpr uint32_t kLow = 0x0f0f0f0f;
  static_assert(kGroups <= kChains && kChains <= 2);
  int sums[kChains][4] = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint4 w = slab.halves[half];
    int(&chain)[4] = sums[half % kChains];
    const auto upper = [](uint32_t word) { return kWholeBytes ? word : word & ~kLow; };
    mma_bytes(chain, w.x & kLow, upper(w.x), w.y & kLow, upper(w.y), x[half].x, x[half].y);
    mma_bytes(chain, w.z & kLow, upper(w.z), w.w & kLow, upper(w.w), x[half].z, x[half].w);
  }
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const auto sum = [&](int i) {
      return kGroups < kChains ? sums[0][i] + sums[1][i] : sums[group][i];
    };
    const int low = sum(0) * 256 + sum(1), high = sum(2) * 256 + sum(3);
    const int of_low = low - 8 * row.sums[group];
    const int of_high = high - (kWholeBytes ? low : 0) - 128 * row.sums[group];  // 16 times
    const float2 scales = lane_scales(slab.scales[group]);
    const float2 units =
        make_float2(__fmul_rn(scales.x, row.unit), __fmul_rn(scales.y * (1.0f / 16), row.unit));
    total.x = __fmaf_rn(__int2float_rn(of_low), units.x, total.x);
    total.y = __fmaf_rn(__int2float_rn(of_high), units.y, total.y);
  }
}

}  // namespace slip
