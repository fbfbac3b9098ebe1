// Integer dot products on AVX-512 VNNI: 16 outputs (one per 32-bit lane), T rows of activations in
// one or two bytes. The same functions are in dot_avx2.h and dot_portable.h.
//
// int4: a chunk is 64 bytes = 16 outputs x 8 inputs. Byte 4 * lane + j holds input j of the chunk
// in its low and input j + 4 in its high nibble, as code + 8, so unsigned.
// int8: a chunk is 64 bytes = 16 outputs x 4 inputs, signed.
// x: one byte per input; or per four inputs four high bytes, then four low bytes: a value is 256 *
// high + low, so that the byte instruction runs twice and the two sums are joined.
#pragma once

#include <cstring>

#include "kernels/cpu/simd/vec_avx512.h"

namespace slip {
namespace {

// Sums of 16 floats that fit into the registers beside what feeds them, and rows among them.
constexpr int kFloatChains = 18;
constexpr int kFloatRows = 6;

// Queries of attention that are computed together, and the keys they meet at a time: 24 registers
// of sums.
constexpr int kQueries = 8;
constexpr int kScoreKeys = 3;

// Rows that share unpacked weights.
constexpr int kInt4Rows = 8;
constexpr int kInt8Rows = 6;

inline __m512i broadcast4(const int8_t* p) {
  int32_t four;
  std::memcpy(&four, p, 4);
  return _mm512_set1_epi32(four);
}
// Integral values of at most 16 bits, as the dot products want them.
template <int kBytes>
inline void store_activations(int8_t* p, F32x16 values) {
  const __m512i v = _mm512_cvtps_epi32(values);
  if constexpr (kBytes == 1) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(v));
  } else {
    const __m512i high = _mm512_srai_epi32(_mm512_add_epi32(v, _mm512_set1_epi32(128)), 8);
    const __m512i low = _mm512_sub_epi32(v, _mm512_slli_epi32(high, 8));
    const __m128i h = _mm512_cvtepi32_epi8(high), l = _mm512_cvtepi32_epi8(low);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_unpacklo_epi32(h, l));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 16), _mm_unpackhi_epi32(h, l));
  }
}

// Sums of products with the high and the low bytes of activations, in C chains that hide the
// latency of the dot instruction.
template <int kBytes, int C>
struct ByteSums {
  __m512i part[kBytes][C];

  ByteSums() {
    for (auto& chains : part)
      for (__m512i& chain : chains) chain = _mm512_setzero_si512();
  }
  // w: unsigned bytes of four inputs; x: those inputs.
  void add(int chain, __m512i w, const int8_t* x) {
    for (int b = 0; b < kBytes; ++b)
      part[b][chain] = _mm512_dpbusd_epi32(part[b][chain], w, broadcast4(x + 4 * b));
  }
  __m512i total() const {
    __m512i sums[kBytes];
    for (int b = 0; b < kBytes; ++b) {
      sums[b] = part[b][0];
      for (int c = 1; c < C; ++c) sums[b] = _mm512_add_epi32(sums[b], part[b][c]);
    }
    if constexpr (kBytes == 1) return sums[0];
    return _mm512_add_epi32(_mm512_slli_epi32(sums[0], 8), sums[kBytes - 1]);
  }
};

// out[t] = offsets[t] + sum over chunks of unsigned code * x
template <int kBytes, int T>
inline void int4_dot(const uint8_t* codes, int64_t chunks, const int8_t* const* x,
                     const int32_t* offsets, F32x16* out) {
  const __m512i nibble = _mm512_set1_epi8(15);
  // Four cycles pass before a chain can go on: eight keep the processor busy, and few rows must
  // have several.
  constexpr int kChains = kBytes * T == 1 ? 4 : kBytes * T < 8 ? 2 : 1;
  constexpr int kTogether = kChains > 2 ? 2 : 1;
  ByteSums<kBytes, kChains> sums[T];
#pragma GCC unroll 1
  for (int64_t c = 0; c < chunks; c += kTogether) {
    for (int i = 0; i < kTogether; ++i) {
      const __m512i w = _mm512_loadu_si512(codes + (c + i) * 64);
      const __m512i low = _mm512_and_si512(w, nibble);
      const __m512i high = _mm512_and_si512(_mm512_srli_epi16(w, 4), nibble);
      const int64_t input = (c + i) * 8 * kBytes;
      for (int t = 0; t < T; ++t) sums[t].add(2 * i, low, x[t] + input);
      for (int t = 0; t < T; ++t)
        sums[t].add((2 * i + 1) % kChains, high, x[t] + input + 4 * kBytes);
    }
  }
  for (int t = 0; t < T; ++t)
    out[t] = _mm512_cvtepi32_ps(_mm512_add_epi32(sums[t].total(), _mm512_set1_epi32(offsets[t])));
}

// out[t] = sum over chunks of code * x; totals[t] is the sum of these x
template <int kBytes, int T>
inline void int8_dot(const int8_t* codes, int64_t chunks, const int8_t* const* x,
                     const int32_t* totals, F32x16* out) {
  // The instruction wants unsigned weights: code + 128, and 128 * sum(x) comes off again.
  const __m512i flip = _mm512_set1_epi8(int8_t(0x80));
  constexpr int kChains = T == 1 ? 2 : 1;
  ByteSums<kBytes, kChains> sums[T];
  const auto add_chunk = [&](int64_t c, int chain) {
    const __m512i w = _mm512_xor_si512(_mm512_loadu_si512(codes + c * 64), flip);
    for (int t = 0; t < T; ++t) sums[t].add(chain, w, x[t] + c * 4 * kBytes);
  };
  int64_t c = 0;
  for (; c + 2 <= chunks; c += 2) {
    add_chunk(c, 0);
    add_chunk(c + 1, kChains - 1);
  }
  if (c < chunks) add_chunk(c, 0);
  for (int t = 0; t < T; ++t)
    out[t] =
        _mm512_cvtepi32_ps(_mm512_sub_epi32(sums[t].total(), _mm512_set1_epi32(128 * totals[t])));
}

}  // namespace
}  // namespace slip
