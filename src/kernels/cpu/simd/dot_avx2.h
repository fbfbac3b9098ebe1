// Integer dot products on AVX2: 16 outputs, T rows of activations in two bytes. See dot_avx512.h
// for the data layout.
#pragma once

#include <cstring>

#include "kernels/cpu/simd/vec_avx2.h"

namespace slip {
namespace {

inline __m256i broadcast4(const int8_t* p) {
  int32_t four;
  std::memcpy(&four, p, 4);
  return _mm256_set1_epi32(four);
}
inline __m256i load32(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
// The bytes of activations were multiplied apart; pairs of 16-bit sums join to 256 * high + low.
inline __m256i join_bytes(__m256i high, __m256i low) {
  return _mm256_add_epi32(_mm256_madd_epi16(high, _mm256_set1_epi16(256)),
                          _mm256_madd_epi16(low, _mm256_set1_epi16(1)));
}

template <int T>
inline void int4_dot(const uint8_t* codes, int64_t chunks, const int8_t* const* x,
                     const int32_t* offsets, F32x16* out) {
  const __m256i nibble = _mm256_set1_epi8(15);
  __m256i total[T][2];
  for (int t = 0; t < T; ++t) total[t][0] = total[t][1] = _mm256_set1_epi32(offsets[t]);
  // A pair of products is at most 2 * 15 * 127 = 3810, so eight of them fit 16 bits: four chunks.
  for (int64_t c = 0; c < chunks; c += 4) {
    __m256i w[8][2];  // unpacked once for all rows
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      for (int half = 0; half < 2; ++half) {
        const __m256i both = load32(codes + (c + j) * 64 + half * 32);
        w[2 * j][half] = _mm256_and_si256(both, nibble);
        w[2 * j + 1][half] = _mm256_and_si256(_mm256_srli_epi16(both, 4), nibble);
      }
    }
    for (int t = 0; t < T; ++t) {
      __m256i high0 = _mm256_setzero_si256(), high1 = high0, low0 = high0, low1 = high0;
      const int8_t* values = x[t] + c * 16;
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        const __m256i h = broadcast4(values + j * 8), l = broadcast4(values + j * 8 + 4);
        high0 = _mm256_add_epi16(high0, _mm256_maddubs_epi16(w[j][0], h));
        high1 = _mm256_add_epi16(high1, _mm256_maddubs_epi16(w[j][1], h));
        low0 = _mm256_add_epi16(low0, _mm256_maddubs_epi16(w[j][0], l));
        low1 = _mm256_add_epi16(low1, _mm256_maddubs_epi16(w[j][1], l));
      }
      total[t][0] = _mm256_add_epi32(total[t][0], join_bytes(high0, low0));
      total[t][1] = _mm256_add_epi32(total[t][1], join_bytes(high1, low1));
    }
  }
  for (int t = 0; t < T; ++t)
    out[t] = {_mm256_cvtepi32_ps(total[t][0]), _mm256_cvtepi32_ps(total[t][1])};
}

template <int T>
inline void int8_dot(const int8_t* codes, int64_t chunks, const int8_t* const* x, F32x16* out) {
  __m256i total[T][2];
  for (int t = 0; t < T; ++t) total[t][0] = total[t][1] = _mm256_setzero_si256();
  for (int64_t c = 0; c < chunks; ++c) {
    for (int half = 0; half < 2; ++half) {
      const __m256i w = load32(codes + c * 64 + half * 32);
      const __m256i magnitude = _mm256_abs_epi8(w);
      for (int t = 0; t < T; ++t) {
        // |w| * (x with w's sign): a pair is at most 2 * 127 * 127, which fits 16 bits.
        const __m256i h = _mm256_sign_epi8(broadcast4(x[t] + c * 8), w);
        const __m256i l = _mm256_sign_epi8(broadcast4(x[t] + c * 8 + 4), w);
        total[t][half] = _mm256_add_epi32(
            total[t][half],
            join_bytes(_mm256_maddubs_epi16(magnitude, h), _mm256_maddubs_epi16(magnitude, l)));
      }
    }
  }
  for (int t = 0; t < T; ++t)
    out[t] = {_mm256_cvtepi32_ps(total[t][0]), _mm256_cvtepi32_ps(total[t][1])};
}

}  // namespace
}  // namespace slip
