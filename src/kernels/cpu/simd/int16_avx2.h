// Thirty-two 16-bit integers in two AVX2 registers: how codes become levels, and dot products of
// pairs. Same functions as int16_avx512.h and int16_portable.h.
#pragma once

#include <cstring>

#include "kernels/cpu/simd/vec_avx2.h"

namespace slip {
namespace {

struct I16x32 {
  __m256i lo, hi;
};

// Queries whose products with one vector of levels are summed side by side.
constexpr int kPairQueries = 4;

inline I16x32 load_words(const uint16_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 16))};
}
inline void store_words(int16_t* p, I16x32 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 16), x.hi);
}

// To the left by kBits, or to the right if negative.
template <int kBits>
inline I16x32 shift(I16x32 x) {
  if constexpr (kBits >= 0)
    return {_mm256_slli_epi16(x.lo, kBits), _mm256_slli_epi16(x.hi, kBits)};
  else
    return {_mm256_srli_epi16(x.lo, -kBits), _mm256_srli_epi16(x.hi, -kBits)};
}
inline I16x32 keep_bits(I16x32 x, uint16_t mask) {
  const __m256i bits = _mm256_set1_epi16(int16_t(mask));
  return {_mm256_and_si256(x.lo, bits), _mm256_and_si256(x.hi, bits)};
}
inline I16x32 either(I16x32 a, I16x32 b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}

// The upper byte of every word, sign-extended.
inline I16x32 upper_byte(I16x32 x) {
  return {_mm256_srai_epi16(x.lo, 8), _mm256_srai_epi16(x.hi, 8)};
}

// Sixteen bytes, and the one that bits 8 to 11 of each word name; bits 12 to 15 are zero.
inline I16x32 load_book(const int8_t* book) {
  const __m256i both =
      _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(book)));
  return {both, both};
}
inline I16x32 look_up(I16x32 book, I16x32 x) {
  return upper_byte({_mm256_shuffle_epi8(book.lo, x.lo), _mm256_shuffle_epi8(book.hi, x.hi)});
}

// Integral values, in order.
inline void store_int16(int16_t* p, F32x16 values) {
  const __m256i packed =  // 0-3, 8-11 | 4-7, 12-15
      _mm256_packs_epi32(_mm256_cvtps_epi32(values.lo), _mm256_cvtps_epi32(values.hi));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}

inline void store_int8(int8_t* p, F32x16 values) {
  alignas(32) int16_t words[16];
  store_int16(words, values);
  const auto* halves = reinterpret_cast<const __m128i*>(words);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packs_epi16(_mm_load_si128(halves), _mm_load_si128(halves + 1)));
}

// out[q][t] = 16 sums over `pairs` of level 2i * x[2i] + level 2i + 1 * x[2i + 1]. Levels of T
// blocks, each [pairs, 16, 2]; x of Q rows, x_stride apart.
template <int Q, int T>
inline void pair_dot(const int16_t* levels, int64_t pairs, const int16_t* x, int64_t x_stride,
                     F32x16 (&out)[Q][T]) {
  for (int t = 0; t < T; ++t) {  // one block of Q rows fills the registers
    __m256i total[Q][2];
    for (int q = 0; q < Q; ++q) total[q][0] = total[q][1] = _mm256_setzero_si256();
    const int16_t* block = levels + t * pairs * 32;
#pragma GCC unroll 4
    for (int64_t i = 0; i < pairs; ++i) {
      const auto* level = reinterpret_cast<const __m256i*>(block + i * 32);
      const __m256i lo = _mm256_loadu_si256(level), hi = _mm256_loadu_si256(level + 1);
      for (int q = 0; q < Q; ++q) {
        int32_t pair;
        std::memcpy(&pair, x + q * x_stride + 2 * i, sizeof(pair));
        const __m256i both = _mm256_set1_epi32(pair);
        total[q][0] = _mm256_add_epi32(total[q][0], _mm256_madd_epi16(lo, both));
        total[q][1] = _mm256_add_epi32(total[q][1], _mm256_madd_epi16(hi, both));
      }
    }
    for (int q = 0; q < Q; ++q)
      out[q][t] = {_mm256_cvtepi32_ps(total[q][0]), _mm256_cvtepi32_ps(total[q][1])};
  }
}

}  // namespace
}  // namespace slip
