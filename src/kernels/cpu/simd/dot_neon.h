// Integer dot products on NEON with FEAT_DotProd: lanes_neon.h for activations of one and of two
// bytes.
#pragma once

#include "kernels/cpu/simd/lanes_neon.h"

namespace slip {
namespace {

// Rows that share weights. Unpacking takes 8 instructions per chunk of 64 bytes of int4 and a row's
// products 16: with four rows a ninth of the work is unpacking. With more, g++ 12 copies sums about
// or spills them.
constexpr int kInt4Rows = 4;
constexpr int kInt8Rows = 5;

// Integral values of at most 16 bits, as the dot products want them.
template <int kBytes>
inline void store_activations(int8_t* p, F32x16 values) {
  store_for_lanes<kBytes>(p, values);
}

// out[t] = offsets[t] + sum over chunks of unsigned code * x
template <int kBytes, int T>
inline void int4_dot(const uint8_t* codes, int64_t chunks, const int8_t* const* x,
                     const int32_t* offsets, F32x16* out) {
  int4_lane_dot<kBytes, T>(codes, chunks, x, offsets, out);
}

// out[t] = sum over chunks of code * x
template <int kBytes, int T>
inline void int8_dot(const int8_t* codes, int64_t chunks, const int8_t* const* x,
                     const int32_t* /*totals*/, F32x16* out) {
  int8_lane_dot<kBytes, T>(codes, chunks, x, out);
}

}  // namespace
}  // namespace slip
