// Sixteen floats as two AVX2 registers. Same functions as vec_avx512.h and vec_portable.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace slip {
namespace {

struct F32x16 {
  __m256 lo, hi;
};

inline F32x16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline F32x16 set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline F32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, F32x16 x) {
  _mm256_storeu_ps(p, x.lo);
  _mm256_storeu_ps(p + 8, x.hi);
}
inline F32x16 add(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
inline F32x16 sub(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
inline F32x16 mul(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
inline F32x16 div(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
// a * b + c
inline F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
inline F32x16 max(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
inline F32x16 min(F32x16 a, F32x16 b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
inline F32x16 abs(F32x16 a) {
  const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  return {_mm256_and_ps(a.lo, mask), _mm256_and_ps(a.hi, mask)};
}
inline F32x16 round_even(F32x16 a) {
  constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(a.lo, kMode), _mm256_round_ps(a.hi, kMode)};
}
// 2^n for integral n in [-126, 127]
inline F32x16 exp2_integral(F32x16 n) {
  const auto half = [](__m256 x) {
    const __m256i bits = _mm256_add_epi32(_mm256_cvtps_epi32(x), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 23));
  };
  return {half(n.lo), half(n.hi)};
}

// 1 where a >= b, otherwise 0
inline F32x16 one_if_at_least(F32x16 a, F32x16 b) {
  const __m256 one = _mm256_set1_ps(1.0f);
  return {_mm256_and_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_GE_OQ), one),
          _mm256_and_ps(_mm256_cmp_ps(a.hi, b.hi, _CMP_GE_OQ), one)};
}
// Sum and difference of lanes kStride apart, in place of the two.
template <int kStride>
inline F32x16 butterfly(F32x16 a) {
  if constexpr (kStride == 8) {
    return {_mm256_add_ps(a.lo, a.hi), _mm256_sub_ps(a.lo, a.hi)};
  } else {
    const auto half = [](__m256 x) {
      __m256 other;
      if constexpr (kStride == 1) other = _mm256_permute_ps(x, 0xb1);
      if constexpr (kStride == 2) other = _mm256_permute_ps(x, 0x4e);
      if constexpr (kStride == 4) other = _mm256_permute2f128_ps(x, x, 1);
      constexpr int kSecond = kStride == 1 ? 0xaa : kStride == 2 ? 0xcc : 0xf0;  // of the two
      return _mm256_blend_ps(_mm256_add_ps(other, x), _mm256_sub_ps(other, x), kSecond);
    };
    return {half(a.lo), half(a.hi)};
  }
}

inline float sum(F32x16 a) {
  const __m256 s = _mm256_add_ps(a.lo, a.hi);
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  q = _mm_add_ss(q, _mm_movehdup_ps(q));
  return _mm_cvtss_f32(q);
}
inline float largest(F32x16 a) {
  const __m256 s = _mm256_max_ps(a.lo, a.hi);
  __m128 q = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  q = _mm_max_ps(q, _mm_movehl_ps(q, q));
  q = _mm_max_ss(q, _mm_movehdup_ps(q));
  return _mm_cvtss_f32(q);
}

inline F32x16 load_bf16(const uint16_t* p) {
  const auto half = [](const uint16_t* q) {
    const __m256i wide =
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(q)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  };
  return {half(p), half(p + 8)};
}
inline F32x16 load_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
// e4m3 with sign, exponent and mantissa moved to where a float has them: value * 2^-120.
inline F32x16 load_fp8_bits(const uint8_t* p) {
  const auto half = [](const uint8_t* bytes) {
    const __m256i wide =
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
    const __m256i bits =
        _mm256_and_si256(_mm256_slli_epi32(wide, 20), _mm256_set1_epi32(int32_t(0x87f00000)));
    return _mm256_castsi256_ps(bits);
  };
  return {half(p), half(p + 8)};
}

}  // namespace
}  // namespace slip
