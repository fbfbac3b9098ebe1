// The formats that lie in plain rows, four floats at a time.
#pragma once

#include "kernels/cuda/device/warp.cuh"
#include "quant/weight.h"

namespace slip {

template <class Widen>
__device__ __forceinline__ float4 widen_pairs(uint2 pairs, Widen widen) {
  return make_float4(widen(uint16_t(pairs.x & 0xffff)), widen(uint16_t(pairs.x >> 16)),
                     widen(uint16_t(pairs.y & 0xffff)), widen(uint16_t(pairs.y >> 16)));
}

struct F32Row {
  using Quad = uint4;
  __device__ static Quad load(const std::byte* p) { return load_stream(p); }
  __device__ static float4 widen(Quad quad) {
    return make_float4(__uint_as_float(quad.x), __uint_as_float(quad.y), __uint_as_float(quad.z),
                       __uint_as_float(quad.w));
  }
};

struct Bf16Row {
  using Quad = uint2;
  __device__ static Quad load(const std::byte* p) { return load_stream_half(p); }
  __device__ static float4 widen(Quad quad) {
    return widen_pairs(quad, [](uint16_t bits) { return bf16_value(bits); });
  }
};

struct F16Row {
  using Quad = uint2;
  __device__ static Quad load(const std::byte* p) { return load_stream_half(p); }
  __device__ static float4 widen(Quad quad) {
    return widen_pairs(quad, [](uint16_t bits) { return __half2float(__ushort_as_half(bits)); });
  }
};

// Bytes of a row: rounded up to 16, as device/weight_tiles.h has them.
template <class Row>
__device__ __forceinline__ int64_t float_row_bytes(int64_t in) {
  constexpr int64_t kBytes = sizeof(typename Row::Quad) / 4;
  return (in * kBytes + 15) / 16 * 16;
}

}  // namespace slip
