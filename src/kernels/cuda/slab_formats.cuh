// The formats that lie in slabs, as tensor cores take them: a lane's words of a slab, and what they
// are in each step.
#pragma once

#include "kernels/cuda/device/mma.cuh"

namespace slip {

struct Int4Slab {
  static constexpr DeviceFormat kFormat = DeviceFormat::int4_group;
  static constexpr int kWords = 8;  // of 32 bits, of a lane
  __device__ static WeightFragment fragment(const uint32_t* words, int step) {
    return unpack_int4(words[step]);
  }
};
struct Int8Slab {
  static constexpr DeviceFormat kFormat = DeviceFormat::int8_row;
  static constexpr int kWords = 16;
  __device__ static WeightFragment fragment(const uint32_t* words, int step) {
    return unpack_int8({words[2 * step], words[2 * step + 1]});
  }
};
struct F16Slab {
  static constexpr DeviceFormat kFormat = DeviceFormat::f16_slabs;
  static constexpr int kWords = 32;
  __device__ static WeightFragment fragment(const uint32_t* words, int step) {
    return {{words[4 * step], words[4 * step + 1], words[4 * step + 2], words[4 * step + 3]}};
  }
};
struct Fp8Slab {
  static constexpr DeviceFormat kFormat = DeviceFormat::fp8_block;
  static constexpr int kWords = 16;
  __device__ static WeightFragment fragment(const uint32_t* words, int step) {
    return unpack_fp8({words[2 * step], words[2 * step + 1]});
  }
};

// A lane's words [first, first + kCount), two or whole pieces of four.
template <int kCount>
__device__ __forceinline__ void load_lane_words(const std::byte* slab, int first,
                                                uint32_t (&words)[kCount]) {
  const int lane = int(threadIdx.x) % kWarp;
  const auto* from = reinterpret_cast<const uint32_t*>(slab) + first / 4 * kWarp * 4 + lane * 4;
  if constexpr (kCount == 2) {
    const uint2 two = *reinterpret_cast<const uint2*>(from + first % 4);
    words[0] = two.x;
    words[1] = two.y;
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const uint4 four = *reinterpret_cast<const uint4*>(from + i * kWarp);
      words[i] = four.x;
      words[i + 1] = four.y;
      words[i + 2] = four.z;
      words[i + 3] = four.w;
    }
  }
}

// totals += sums * scales * units. scales: of a lane's outputs l / 4 and l / 4 + 8; units: of its
// rows 2 (l % 4) and the next. Spelled out, so that every kernel rounds alike.
__device__ __forceinline__ void add_scaled(Sums& totals, const Sums& sums, float2 scales,
                                           float2 units) {
  totals.v[0] = __fmaf_rn(sums.v[0], __fmul_rn(scales.x, units.x), totals.v[0]);
  totals.v[1] = __fmaf_rn(sums.v[1], __fmul_rn(scales.x, units.y), totals.v[1]);
  totals.v[2] = __fmaf_rn(sums.v[2], __fmul_rn(scales.y, units.x), totals.v[2]);
  totals.v[3] = __fmaf_rn(sums.v[3], __fmul_rn(scales.y, units.y), totals.v[3]);
}

// int4: scales of a lane's outputs from those of a group, f16 [16], or from the lane's word of
// them.
__device__ __forceinline__ float2 lane_scales(uint32_t word) {
  return __half22float2(bits_half2(word));
}
__device__ __forceinline__ float2 lane_scales(const std::byte* group_scales) {
  return lane_scales(reinterpret_cast<const uint32_t*>(group_scales)[int(threadIdx.x) % kWarp / 4]);
}

}  // namespace slip
