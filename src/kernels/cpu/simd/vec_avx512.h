// Sixteen floats as one AVX-512 register. Same functions as vec_avx2.h and vec_portable.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace slip {
namespace {

using F32x16 = __m512;

inline F32x16 zero() { return _mm512_setzero_ps(); }
inline F32x16 set1(float x) { return _mm512_set1_ps(x); }
inline F32x16 load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, F32x16 x) { _mm512_storeu_ps(p, x); }
inline F32x16 add(F32x16 a, F32x16 b) { return _mm512_add_ps(a, b); }
inline F32x16 sub(F32x16 a, F32x16 b) { return _mm512_sub_ps(a, b); }
inline F32x16 mul(F32x16 a, F32x16 b) { return _mm512_mul_ps(a, b); }
inline F32x16 div(F32x16 a, F32x16 b) { return _mm512_div_ps(a, b); }
// a * b + c
inline F32x16 fma(F32x16 a, F32x16 b, F32x16 c) { return _mm512_fmadd_ps(a, b, c); }
inline F32x16 max(F32x16 a, F32x16 b) { return _mm512_max_ps(a, b); }
inline F32x16 min(F32x16 a, F32x16 b) { return _mm512_min_ps(a, b); }
inline F32x16 abs(F32x16 a) { return _mm512_abs_ps(a); }
inline F32x16 round_even(F32x16 a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// 2^n for integral n in [-126, 127]
inline F32x16 exp2_integral(F32x16 n) {
  const __m512i bits = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
  return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 23));
}

// 1 where a >= b, otherwise 0
inline F32x16 one_if_at_least(F32x16 a, F32x16 b) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_GE_OQ), _mm512_set1_ps(1.0f));
}
// Sum and difference of lanes kStride apart, in place of the two.
template <int kStride>
inline F32x16 butterfly(F32x16 a) {
  __m512 other;
  __mmask16 second;  // of the two
  if constexpr (kStride == 1) other = _mm512_permute_ps(a, 0xb1), second = 0xaaaa;
  if constexpr (kStride == 2) other = _mm512_permute_ps(a, 0x4e), second = 0xcccc;
  if constexpr (kStride == 4) other = _mm512_shuffle_f32x4(a, a, 0xb1), second = 0xf0f0;
  if constexpr (kStride == 8) other = _mm512_shuffle_f32x4(a, a, 0x4e), second = 0xff00;
  return _mm512_mask_sub_ps(_mm512_add_ps(other, a), second, other, a);
}

// The same order as vec_avx2.h, so that the two agree bit for bit.
inline float sum(F32x16 a) {
  const __m256 s = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  q = _mm_add_ss(q, _mm_movehdup_ps(q));
  return _mm_cvtss_f32(q);
}
inline float largest(F32x16 a) { return _mm512_reduce_max_ps(a); }

inline F32x16 load_bf16(const uint16_t* p) {
  const __m512i wide =
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
inline F32x16 load_f16(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
// e4m3 with sign, exponent and mantissa moved to where a float has them: value * 2^-120.
inline F32x16 load_fp8_bits(const uint8_t* p) {
  const __m512i wide = _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m512i bits =
      _mm512_and_si512(_mm512_slli_epi32(wide, 20), _mm512_set1_epi32(int32_t(0x87f00000)));
  return _mm512_castsi512_ps(bits);
}

}  // namespace
}  // namespace slip
