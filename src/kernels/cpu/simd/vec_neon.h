// Sixteen floats as four NEON registers. Same functions as vec_avx2.h, vec_avx512.h and
// vec_portable.h, with the same bits as the first two.
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace slip {
namespace {

// Members, not an array of four: g++ 12 leaves arrays of arrays on the stack.
struct F32x16 {
  float32x4_t a, b, c, d;
};

template <class Fn, class... Vectors>
inline F32x16 each_quad(const Fn& fn, const Vectors&... x) {
  return {fn(x.a...), fn(x.b...), fn(x.c...), fn(x.d...)};
}

inline F32x16 set1(float x) {
  const float32x4_t quad = vdupq_n_f32(x);
  return {quad, quad, quad, quad};
}
inline F32x16 zero() { return set1(0); }
inline F32x16 load(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
inline void store(float* p, F32x16 x) {
  vst1q_f32(p, x.a);
  vst1q_f32(p + 4, x.b);
  vst1q_f32(p + 8, x.c);
  vst1q_f32(p + 12, x.d);
}
inline F32x16 add(F32x16 x, F32x16 y) {
  return each_quad([](auto a, auto b) { return vaddq_f32(a, b); }, x, y);
}
inline F32x16 sub(F32x16 x, F32x16 y) {
  return each_quad([](auto a, auto b) { return vsubq_f32(a, b); }, x, y);
}
inline F32x16 mul(F32x16 x, F32x16 y) {
  return each_quad([](auto a, auto b) { return vmulq_f32(a, b); }, x, y);
}
inline F32x16 div(F32x16 x, F32x16 y) {
  return each_quad([](auto a, auto b) { return vdivq_f32(a, b); }, x, y);
}
// x * y + z
inline F32x16 fma(F32x16 x, F32x16 y, F32x16 z) {
  return each_quad([](auto a, auto b, auto c) { return vfmaq_f32(c, a, b); }, x, y, z);
}
// Of a number and no number they give the number, as on other processors when it comes second.
inline F32x16 max(F32x16 x, F32x16 y) {
  return each_quad([](auto a, auto b) { return vmaxnmq_f32(a, b); }, x, y);
}
inline F32x16 min(F32x16 x, F32x16 y) {
  return each_quad([](auto a, auto b) { return vminnmq_f32(a, b); }, x, y);
}
inline F32x16 abs(F32x16 x) {
  return each_quad([](auto a) { return vabsq_f32(a); }, x);
}
inline F32x16 round_even(F32x16 x) {
  return each_quad([](auto a) { return vrndnq_f32(a); }, x);
}
// 2^n for integral n in [-126, 127]
inline F32x16 exp2_integral(F32x16 n) {
  const auto quad = [](float32x4_t a) {
    const int32x4_t bits = vaddq_s32(vcvtq_s32_f32(a), vdupq_n_s32(127));
    return vreinterpretq_f32_s32(vshlq_n_s32(bits, 23));
  };
  return each_quad(quad, n);
}

// 1 where x >= y, otherwise 0
inline F32x16 one_if_at_least(F32x16 x, F32x16 y) {
  const auto quad = [](float32x4_t a, float32x4_t b) {
    const uint32x4_t one = vreinterpretq_u32_f32(vdupq_n_f32(1.0f));
    return vreinterpretq_f32_u32(vandq_u32(vcgeq_f32(a, b), one));
  };
  return each_quad(quad, x, y);
}

struct TwoQuads {
  float32x4_t a, b;
};
inline TwoQuads sum_and_difference(float32x4_t a, float32x4_t b) {
  return {vaddq_f32(a, b), vsubq_f32(a, b)};
}
// What is to be added to each other of a and of b, with strides of 1 or 2: the first ones of both
// in one register, the second ones in the other. Done twice, it leaves what was there before.
template <int kStride>
inline TwoQuads transpose(float32x4_t a, float32x4_t b) {
  if constexpr (kStride == 1) {
    return {vtrn1q_f32(a, b), vtrn2q_f32(a, b)};
  } else {
    const float64x2_t wide_a = vreinterpretq_f64_f32(a), wide_b = vreinterpretq_f64_f32(b);
    return {vreinterpretq_f32_f64(vtrn1q_f64(wide_a, wide_b)),
            vreinterpretq_f32_f64(vtrn2q_f64(wide_a, wide_b))};
  }
}
// Sum and difference of lanes kStride apart, in place of the two.
template <int kStride>
inline F32x16 butterfly(F32x16 x) {
  if constexpr (kStride == 8) {
    const auto [a, c] = sum_and_difference(x.a, x.c);
    const auto [b, d] = sum_and_difference(x.b, x.d);
    return {a, b, c, d};
  } else {
    const auto two = [](float32x4_t p, float32x4_t q) {
      if constexpr (kStride == 4) {
        return sum_and_difference(p, q);
      } else {
        const auto [first, second] = transpose<kStride>(p, q);
        const auto [total, rest] = sum_and_difference(first, second);
        return transpose<kStride>(total, rest);
      }
    };
    const auto [a, b] = two(x.a, x.b);
    const auto [c, d] = two(x.c, x.d);
    return {a, b, c, d};
  }
}

// The same order as vec_avx2.h.
inline float sum(F32x16 x) {
  const float32x4_t s = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
  const float32x2_t q = vadd_f32(vget_low_f32(s), vget_high_f32(s));
  return vget_lane_f32(q, 0) + vget_lane_f32(q, 1);
}
inline float largest(F32x16 x) {
  return vmaxnmvq_f32(vmaxnmq_f32(vmaxnmq_f32(x.a, x.b), vmaxnmq_f32(x.c, x.d)));
}

// Integral values.
inline int16x8_t to_int16(float32x4_t a, float32x4_t b) {
  return vmovn_high_s32(vmovn_s32(vcvtq_s32_f32(a)), vcvtq_s32_f32(b));
}

// Sixteen-bit halves become the upper halves of floats.
inline F32x16 widen_upper(uint16x8_t first, uint16x8_t second) {
  return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(first), 16)),
          vreinterpretq_f32_u32(vshll_high_n_u16(first, 16)),
          vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(second), 16)),
          vreinterpretq_f32_u32(vshll_high_n_u16(second, 16))};
}
inline F32x16 load_bf16(const uint16_t* p) { return widen_upper(vld1q_u16(p), vld1q_u16(p + 8)); }
inline F32x16 load_f16(const uint16_t* p) {
  const float16x8_t first = vreinterpretq_f16_u16(vld1q_u16(p));
  const float16x8_t second = vreinterpretq_f16_u16(vld1q_u16(p + 8));
  return {vcvt_f32_f16(vget_low_f16(first)), vcvt_high_f32_f16(first),
          vcvt_f32_f16(vget_low_f16(second)), vcvt_high_f32_f16(second)};
}
// e4m3 with sign, exponent and mantissa moved to where a float has them: value * 2^-120.
inline F32x16 load_fp8_bits(const uint8_t* p) {
  const int8x16_t bytes = vreinterpretq_s8_u8(vld1q_u8(p));
  const uint16x8_t kept = vdupq_n_u16(0x87f0);
  return widen_upper(vandq_u16(vreinterpretq_u16_s16(vshll_n_s8(vget_low_s8(bytes), 4)), kept),
                     vandq_u16(vreinterpretq_u16_s16(vshll_high_n_s8(bytes, 4)), kept));
}

}  // namespace
}  // namespace slip
