// Thirty-two 16-bit integers in one AVX-512 register: how codes become levels, and dot products of
// pairs. Same functions as int16_avx2.h and int16_portable.h.
#pragma once

#include <cstring>

#include "kernels/cpu/simd/vec_avx512.h"

namespace slip {
namespace {

using I16x32 = __m512i;

// Queries whose products with one vector of levels are summed side by side.
constexpr int kPairQueries = 8;

inline I16x32 load_words(const uint16_t* p) { return _mm512_loadu_si512(p); }
inline void store_words(int16_t* p, I16x32 x) { _mm512_storeu_si512(p, x); }

// To the left by kBits, or to the right if negative.
template <int kBits>
inline I16x32 shift(I16x32 x) {
  if constexpr (kBits >= 0)
    return _mm512_slli_epi16(x, kBits);
  else
    return _mm512_srli_epi16(x, -kBits);
}
inline I16x32 keep_bits(I16x32 x, uint16_t mask) {
  return _mm512_and_si512(x, _mm512_set1_epi16(int16_t(mask)));
}
inline I16x32 either(I16x32 a, I16x32 b) { return _mm512_or_si512(a, b); }

// The upper byte of every word, sign-extended.
inline I16x32 upper_byte(I16x32 x) { return _mm512_srai_epi16(x, 8); }

// Sixteen bytes, and the one that bits 8 to 11 of each word name; bits 12 to 15 are zero.
inline I16x32 load_book(const int8_t* book) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(book)));
}
inline I16x32 look_up(I16x32 book, I16x32 x) { return upper_byte(_mm512_shuffle_epi8(book, x)); }

// Integral values, in order.
inline void store_int16(int16_t* p, F32x16 values) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(values)));
}

inline void store_int8(int8_t* p, F32x16 values) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(values)));
}

// out[q][t] = 16 sums over `pairs` of level 2i * x[2i] + level 2i + 1 * x[2i + 1]. Levels of T
// blocks, each [pairs, 16, 2]; x of Q rows, x_stride apart.
template <int Q, int T>
inline void pair_dot(const int16_t* levels, int64_t pairs, const int16_t* x, int64_t x_stride,
                     F32x16 (&out)[Q][T]) {
  __m512i total[Q][T];
  for (int q = 0; q < Q; ++q)
    for (int t = 0; t < T; ++t) total[q][t] = _mm512_setzero_si512();
#pragma GCC unroll 4
  for (int64_t i = 0; i < pairs; ++i) {
    __m512i level[T];
    for (int t = 0; t < T; ++t) level[t] = _mm512_loadu_si512(levels + (t * pairs + i) * 32);
    for (int q = 0; q < Q; ++q) {
      int32_t pair;
      std::memcpy(&pair, x + q * x_stride + 2 * i, sizeof(pair));
      for (int t = 0; t < T; ++t)
        total[q][t] = _mm512_dpwssd_epi32(total[q][t], level[t], _mm512_set1_epi32(pair));
    }
  }
  for (int q = 0; q < Q; ++q)
    for (int t = 0; t < T; ++t) out[q][t] = _mm512_cvtepi32_ps(total[q][t]);
}

}  // namespace
}  // namespace slip
