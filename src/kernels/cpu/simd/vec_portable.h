// Sixteen floats in plain C++, for any processor; compilers turn the loops into what they have.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "quant/number_formats.h"

namespace slip {
namespace {

struct F32x16 {
  float v[16];
};

template <class Fn>
inline F32x16 each(Fn&& fn) {
  F32x16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = fn(i);
  return r;
}

inline F32x16 zero() {
  return each([](int) { return 0.0f; });
}
inline F32x16 set1(float x) {
  return each([&](int) { return x; });
}
inline F32x16 load(const float* p) {
  return each([&](int i) { return p[i]; });
}
inline void store(float* p, const F32x16& x) {
  for (int i = 0; i < 16; ++i) p[i] = x.v[i];
}
inline F32x16 add(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return a.v[i] + b.v[i]; });
}
inline F32x16 sub(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return a.v[i] - b.v[i]; });
}
inline F32x16 mul(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return a.v[i] * b.v[i]; });
}
inline F32x16 div(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return a.v[i] / b.v[i]; });
}
// a * b + c
inline F32x16 fma(const F32x16& a, const F32x16& b, const F32x16& c) {
  return each([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
}
inline F32x16 max(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline F32x16 min(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
inline F32x16 abs(const F32x16& a) {
  return each([&](int i) { return std::fabs(a.v[i]); });
}
inline F32x16 round_even(const F32x16& a) {
  return each([&](int i) { return std::nearbyint(a.v[i]); });
}
// 2^n for integral n in [-126, 127]
inline F32x16 exp2_integral(const F32x16& n) {
  return each([&](int i) { return std::bit_cast<float>(uint32_t(int32_t(n.v[i]) + 127) << 23); });
}

// 1 where a >= b, otherwise 0
inline F32x16 one_if_at_least(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return a.v[i] >= b.v[i] ? 1.0f : 0.0f; });
}
// Sum and difference of lanes kStride apart, in place of the two.
template <int kStride>
inline F32x16 butterfly(const F32x16& a) {
  return each([&](int i) {
    const float other = a.v[i ^ kStride];
    return i & kStride ? other - a.v[i] : other + a.v[i];
  });
}

inline float sum(const F32x16& a) {
  float s[8];
  for (int i = 0; i < 8; ++i) s[i] = a.v[i] + a.v[i + 8];
  for (int i = 0; i < 4; ++i) s[i] += s[i + 4];
  return (s[0] + s[2]) + (s[1] + s[3]);
}
inline float largest(const F32x16& a) {
  float m = a.v[0];
  for (int i = 1; i < 16; ++i) m = a.v[i] > m ? a.v[i] : m;
  return m;
}

inline F32x16 load_bf16(const uint16_t* p) {
  return each([&](int i) { return bf16_to_float(p[i]); });
}
inline F32x16 load_f16(const uint16_t* p) {
  return each([&](int i) { return f16_to_float(p[i]); });
}
// e4m3 with sign, exponent and mantissa moved to where a float has them: value * 2^-120.
inline F32x16 load_fp8_bits(const uint8_t* p) {
  return each([&](int i) {
    return std::bit_cast<float>(uint32_t(p[i] & 0x80) << 24 | uint32_t(p[i] & 0x7f) << 20);
  });
}

}  // namespace
}  // namespace slip
