// Integer dot products on AVX2: 16 outputs, T rows of 16-bit activations. See dot_avx512.h for the
// layout of the weights.
//
// x: per eight inputs 16-bit values in the order 0 2 4 6 1 3 5 7. Weights widened to 16 bits come
// out in that order: masking the bytes of a 32-bit lane leaves inputs 0 and 2, shifting first by
// 4, 8 and 12 leaves 4 and 6, 1 and 3, 5 and 7. (Products of bytes, twice, as on AVX-512, are as
// many instructions, and sums of 16 bits to widen.)
//
// Sixteen registers do not hold sums of several rows beside weights. Of INT4 a few chunks are
// unpacked into eight of them, and rows take turns: a row's products with these are summed up in
// two more, and only then added to what it has in memory.
#pragma once

#include <cstring>

#include "kernels/cpu/simd/vec_avx2.h"

namespace slip {
namespace {

// Sums of 16 floats that fit into the registers beside what feeds them, and rows among them.
constexpr int kFloatChains = 4;
constexpr int kFloatRows = 4;

// Queries of attention that are computed together, and the keys they meet at a time.
constexpr int kQueries = 2;
constexpr int kScoreKeys = 3;

// Rows that share unpacked weights.
constexpr int kInt4Rows = 8;
constexpr int kInt8Rows = 6;

inline __m256i broadcast_pair(const int8_t* p) {
  int32_t pair;
  std::memcpy(&pair, p, 4);
  return _mm256_set1_epi32(pair);
}
inline __m256i load32(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

// Integral values of at most 16 bits, as the dot products want them.
template <int kBytes>
inline void store_activations(int8_t* p, F32x16 values) {
  const __m256i packed =  // 0-3, 8-11 | 4-7, 12-15
      _mm256_packs_epi32(_mm256_cvtps_epi32(values.lo), _mm256_cvtps_epi32(values.hi));
  const __m256i ordered = _mm256_permute4x64_epi64(packed, 0xd8);
  if constexpr (kBytes == 1) {
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
    return;
  }
  const __m256i even_first = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,
                                              0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_shuffle_epi8(ordered, even_first));
}

// A sum that is taken here. Left alone, g++ 12 makes the products of all rows first, and leaves
// them in memory until it adds them up.
inline __m256i now(__m256i sum) {
  asm("" : "+x"(sum));
  return sum;
}

// Products of unsigned weights and activations of one or two bytes. Two neighbours are added up, to
// 16 bits or to 32.
template <int kBytes>
inline __m256i multiply(__m256i w, __m256i x) {
  return kBytes == 1 ? _mm256_maddubs_epi16(w, x) : _mm256_madd_epi16(w, x);
}
template <int kBytes>
inline __m256i add_products(__m256i a, __m256i b) {
  return kBytes == 1 ? _mm256_add_epi16(a, b) : _mm256_add_epi32(a, b);
}

// A row's turn: the products of these weights with sixteen bytes of its inputs, added up.
template <int kBytes>
inline void sum_products(const __m256i (&w)[4][2], const int8_t* x, __m256i (&sum)[2]) {
  for (int j = 0; j < 4; ++j) {
    const __m256i inputs = broadcast_pair(x + j * 4);
    for (int half = 0; half < 2; ++half) {
      const __m256i product = multiply<kBytes>(w[j][half], inputs);
      sum[half] = now(j == 0 ? product : add_products<kBytes>(sum[half], product));
    }
  }
}

template <int T>
inline void int4_dot_words(const uint8_t* codes, int64_t chunks, const int8_t* const* x,
                           const int32_t* offsets, F32x16* out) {
  const __m256i nibble = _mm256_set1_epi16(15);
  __m256i total[T][2];
  for (int t = 0; t < T; ++t) total[t][0] = total[t][1] = _mm256_set1_epi32(offsets[t]);
#pragma GCC unroll 1
  for (int64_t c = 0; c < chunks; ++c) {
    __m256i w[4][2];
    for (int half = 0; half < 2; ++half) {
      const __m256i packed = load32(codes + c * 64 + half * 32);
      w[0][half] = _mm256_and_si256(packed, nibble);
      w[1][half] = _mm256_and_si256(_mm256_srli_epi16(packed, 4), nibble);
      w[2][half] = _mm256_and_si256(_mm256_srli_epi16(packed, 8), nibble);
      w[3][half] = _mm256_srli_epi16(packed, 12);
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      __m256i sum[2];
      sum_products<2>(w, x[t] + c * 16, sum);
      for (int half = 0; half < 2; ++half)
        total[t][half] = _mm256_add_epi32(total[t][half], sum[half]);
    }
  }
  for (int t = 0; t < T; ++t)
    out[t] = {_mm256_cvtepi32_ps(total[t][0]), _mm256_cvtepi32_ps(total[t][1])};
}

template <int T>
inline void int8_dot_words(const int8_t* codes, int64_t chunks, const int8_t* const* x,
                           F32x16* out) {
  __m256i total[T][2];
  for (int t = 0; t < T; ++t) total[t][0] = total[t][1] = _mm256_setzero_si256();
  for (int64_t c = 0; c < chunks; ++c) {
    // A chunk has four inputs: the first or second half of eight activations.
    const int64_t offset = c / 2 * 16 + c % 2 * 4;
    for (int half = 0; half < 2; ++half) {
      const __m256i packed = load32(codes + c * 64 + half * 32);
      const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(packed, 8), 8);  // inputs 0 and 2
      const __m256i odd = _mm256_srai_epi16(packed, 8);                         // inputs 1 and 3
      for (int t = 0; t < T; ++t) {
        const __m256i sum =
            _mm256_add_epi32(_mm256_madd_epi16(even, broadcast_pair(x[t] + offset)),
                             _mm256_madd_epi16(odd, broadcast_pair(x[t] + offset + 8)));
        total[t][half] = _mm256_add_epi32(total[t][half], sum);
      }
    }
  }
  for (int t = 0; t < T; ++t)
    out[t] = {_mm256_cvtepi32_ps(total[t][0]), _mm256_cvtepi32_ps(total[t][1])};
}

// One byte per input, in order. Codes are at most 15, so products of bytes and the sums of sixteen
// of them fit into 16 bits: those of four chunks.
template <int T>
inline void int4_dot_bytes(const uint8_t* codes, int64_t chunks, const int8_t* const* x,
                           const int32_t* offsets, F32x16* out) {
  const __m256i nibble = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
  __m256i total[T][2];
  for (int t = 0; t < T; ++t) total[t][0] = total[t][1] = _mm256_set1_epi32(offsets[t]);
#pragma GCC unroll 1
  for (int64_t begin = 0; begin < chunks; begin += 4) {
    __m256i words[T][2];  // of the first two chunks
#pragma GCC unroll 2
    for (int64_t c = begin; c < begin + 4; c += 2) {
      __m256i w[4][2];
      for (int j = 0; j < 2; ++j) {
        for (int half = 0; half < 2; ++half) {
          const __m256i packed = load32(codes + (c + j) * 64 + half * 32);
          w[2 * j][half] = _mm256_and_si256(packed, nibble);
          w[2 * j + 1][half] = _mm256_and_si256(_mm256_srli_epi16(packed, 4), nibble);
        }
      }
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        __m256i sum[2];
        sum_products<1>(w, x[t] + c * 8, sum);
        for (int half = 0; half < 2; ++half) {
          if (c == begin) {
            words[t][half] = sum[half];
          } else {
            const __m256i four = _mm256_add_epi16(words[t][half], sum[half]);
            total[t][half] = _mm256_add_epi32(total[t][half], _mm256_madd_epi16(four, ones));
          }
        }
      }
    }
  }
  for (int t = 0; t < T; ++t)
    out[t] = {_mm256_cvtepi32_ps(total[t][0]), _mm256_cvtepi32_ps(total[t][1])};
}

// Codes and activations are at most 127, so a pair of products fits into 16 bits.
template <int T>
inline void int8_dot_bytes(const int8_t* codes, int64_t chunks, const int8_t* const* x,
                           F32x16* out) {
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i total[T][2];
  for (int t = 0; t < T; ++t) total[t][0] = total[t][1] = _mm256_setzero_si256();
  const auto add_chunk = [&](int64_t c) {
    const __m256i w[2] = {load32(codes + c * 64), load32(codes + c * 64 + 32)};
    const __m256i magnitude[2] = {_mm256_abs_epi8(w[0]), _mm256_abs_epi8(w[1])};
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const __m256i four = broadcast_pair(x[t] + c * 4);
      for (int half = 0; half < 2; ++half) {
        const __m256i words =
            _mm256_maddubs_epi16(magnitude[half], _mm256_sign_epi8(four, w[half]));
        total[t][half] = now(_mm256_add_epi32(total[t][half], _mm256_madd_epi16(words, ones)));
      }
    }
  };
  int64_t c = 0;
  // With one row a chunk is too short for a loop: where it happened to lie took a third.
  for (; T == 1 && c + 2 <= chunks; c += 2) {
    add_chunk(c);
    add_chunk(c + 1);
  }
  for (; c < chunks; ++c) add_chunk(c);
  for (int t = 0; t < T; ++t)
    out[t] = {_mm256_cvtepi32_ps(total[t][0]), _mm256_cvtepi32_ps(total[t][1])};
}

template <int kBytes, int T>
inline void int4_dot(const uint8_t* codes, int64_t chunks, const int8_t* const* x,
                     const int32_t* offsets, F32x16* out) {
  if constexpr (kBytes == 1) {
    int4_dot_bytes<T>(codes, chunks, x, offsets, out);
  } else {
    int4_dot_words<T>(codes, chunks, x, offsets, out);
  }
}
template <int kBytes, int T>
inline void int8_dot(const int8_t* codes, int64_t chunks, const int8_t* const* x,
                     const int32_t* /*totals*/, F32x16* out) {
  if constexpr (kBytes == 1) {
    int8_dot_bytes<T>(codes, chunks, x, out);
  } else {
    int8_dot_words<T>(codes, chunks, x, out);
  }
}

}  // namespace
}  // namespace slip
