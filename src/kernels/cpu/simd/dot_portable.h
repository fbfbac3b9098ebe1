// Integer dot products in plain C++. See dot_avx512.h for the data layout.
#pragma once

#include <cstring>

#include "kernels/cpu/simd/vec_portable.h"

namespace slip {
namespace {

// Sums of 16 floats that fit into the registers beside what feeds them, and rows among them.
constexpr int kFloatChains = 4;
constexpr int kFloatRows = 4;

// Queries of attention that are computed together, and the keys they meet at a time.
constexpr int kQueries = 2;
constexpr int kScoreKeys = 3;

// Rows that share unpacked weights.
constexpr int kInt4Rows = 2;
constexpr int kInt8Rows = 6;

// Integral values of at most 16 bits, as the dot products want them.
template <int kBytes>
inline void store_activations(int8_t* p, const F32x16& values) {
  for (int i = 0; i < 16; ++i) {
    const auto value = int16_t(values.v[i]);
    std::memcpy(p + kBytes * i, &value, kBytes);  // little-endian
  }
}
template <int kBytes>
inline int32_t activation(const int8_t* x, int64_t i) {
  if constexpr (kBytes == 1) return x[i];
  int16_t value;
  std::memcpy(&value, x + 2 * i, 2);
  return value;
}

template <int kBytes, int T>
inline void int4_dot(const uint8_t* codes, int64_t chunks, const int8_t* const* x,
                     const int32_t* offsets, F32x16* out) {
  for (int t = 0; t < T; ++t) {
    int32_t total[16];
    for (int32_t& lane : total) lane = offsets[t];
    for (int64_t c = 0; c < chunks; ++c) {
      for (int j = 0; j < 4; ++j) {
        const int32_t x0 = activation<kBytes>(x[t], c * 8 + j),
                      x1 = activation<kBytes>(x[t], c * 8 + 4 + j);
        for (int lane = 0; lane < 16; ++lane) {
          const int code = codes[c * 64 + lane * 4 + j];
          total[lane] += (code & 15) * x0 + (code >> 4) * x1;
        }
      }
    }
    out[t] = each([&](int i) { return float(total[i]); });
  }
}

template <int kBytes, int T>
inline void int8_dot(const int8_t* codes, int64_t chunks, const int8_t* const* x,
                     const int32_t* /*sums*/, F32x16* out) {
  for (int t = 0; t < T; ++t) {
    int32_t total[16] = {};
    for (int64_t c = 0; c < chunks; ++c) {
      for (int j = 0; j < 4; ++j) {
        const int32_t value = activation<kBytes>(x[t], c * 4 + j);
        for (int lane = 0; lane < 16; ++lane)
          total[lane] += int32_t(codes[c * 64 + lane * 4 + j]) * value;
      }
    }
    out[t] = each([&](int i) { return float(total[i]); });
  }
}

}  // namespace
}  // namespace slip
