// Thirty-two 16-bit integers in four NEON registers: how codes become levels, and dot products of
// pairs. Same functions as int16_avx2.h, int16_avx512.h and int16_portable.h.
#pragma once

#include "kernels/cpu/simd/vec_neon.h"

namespace slip {
namespace {

struct I16x32 {
  uint16x8_t v[4];
};

// Queries whose products with one vector of levels are summed side by side: four have sixteen
// registers of sums, beside four of levels and one of each query, of which lanes are taken.
constexpr int kPairQueries = 4;

template <class Fn>
inline I16x32 each_eight(const Fn& fn) {
  return {fn(0), fn(1), fn(2), fn(3)};
}

inline I16x32 load_words(const uint16_t* p) {
  return each_eight([&](int i) { return vld1q_u16(p + 8 * i); });
}
inline void store_words(int16_t* p, I16x32 x) {
  for (int i = 0; i < 4; ++i) vst1q_s16(p + 8 * i, vreinterpretq_s16_u16(x.v[i]));
}

// To the left by kBits, or to the right if negative.
template <int kBits>
inline I16x32 shift(I16x32 x) {
  return each_eight([&](int i) {
    if constexpr (kBits >= 0)
      return vshlq_n_u16(x.v[i], kBits);
    else
      return vshrq_n_u16(x.v[i], -kBits);
  });
}
inline I16x32 keep_bits(I16x32 x, uint16_t mask) {
  return each_eight([&](int i) { return vandq_u16(x.v[i], vdupq_n_u16(mask)); });
}
inline I16x32 either(I16x32 a, I16x32 b) {
  return each_eight([&](int i) { return vorrq_u16(a.v[i], b.v[i]); });
}

// The upper byte of every word, sign-extended.
inline I16x32 upper_byte(I16x32 x) {
  return each_eight(
      [&](int i) { return vreinterpretq_u16_s16(vshrq_n_s16(vreinterpretq_s16_u16(x.v[i]), 8)); });
}

// Sixteen bytes, and the one that bits 8 to 11 of each word name; bits 12 to 15 are zero.
inline uint8x16_t load_book(const int8_t* book) { return vreinterpretq_u8_s8(vld1q_s8(book)); }
inline I16x32 look_up(uint8x16_t book, I16x32 x) {
  return upper_byte(each_eight(
      [&](int i) { return vreinterpretq_u16_u8(vqtbl1q_u8(book, vreinterpretq_u8_u16(x.v[i]))); }));
}

// Integral values, in order.
inline void store_int16(int16_t* p, F32x16 values) {
  vst1q_s16(p, to_int16(values.a, values.b));
  vst1q_s16(p + 8, to_int16(values.c, values.d));
}
inline void store_int8(int8_t* p, F32x16 values) {
  vst1q_s8(p,
           vmovn_high_s16(vmovn_s16(to_int16(values.a, values.b)), to_int16(values.c, values.d)));
}

// total += 16 levels * lane `kLane` of x
template <int kLane>
inline void add_products(int32x4_t (&total)[4], int16x8_t first, int16x8_t second, int16x8_t x) {
  total[0] = vmlal_laneq_s16(total[0], vget_low_s16(first), x, kLane);
  total[1] = vmlal_high_laneq_s16(total[1], first, x, kLane);
  total[2] = vmlal_laneq_s16(total[2], vget_low_s16(second), x, kLane);
  total[3] = vmlal_high_laneq_s16(total[3], second, x, kLane);
}
// One pair of levels of 16 outputs, for all queries.
template <int kPair, int Q>
inline void add_pair(int32x4_t (&total)[Q][4], const int16_t* level, const int16x8_t (&x)[Q]) {
  const int16x8x2_t first = vld2q_s16(level), second = vld2q_s16(level + 16);
  for (int q = 0; q < Q; ++q) {
    add_products<2 * kPair>(total[q], first.val[0], second.val[0], x[q]);
    add_products<2 * kPair + 1>(total[q], first.val[1], second.val[1], x[q]);
  }
}

// out[q][t] = 16 sums over `pairs` of level 2i * x[2i] + level 2i + 1 * x[2i + 1]. Levels of T
// blocks, each [pairs, 16, 2]; x of Q rows, x_stride apart. Pairs come in fours.
template <int Q, int T>
inline void pair_dot(const int16_t* levels, int64_t pairs, const int16_t* x, int64_t x_stride,
                     F32x16 (&out)[Q][T]) {
  for (int t = 0; t < T; ++t) {  // one block of Q rows fills the registers
    int32x4_t total[Q][4];
    for (auto& row : total)
      for (int32x4_t& quad : row) quad = vdupq_n_s32(0);
    const int16_t* block = levels + t * pairs * 32;
    for (int64_t i = 0; i < pairs; i += 4, block += 4 * 32) {
      int16x8_t four[Q];  // pairs
      for (int q = 0; q < Q; ++q) four[q] = vld1q_s16(x + q * x_stride + 2 * i);
      add_pair<0>(total, block, four);
      add_pair<1>(total, block + 32, four);
      add_pair<2>(total, block + 64, four);
      add_pair<3>(total, block + 96, four);
    }
    for (int q = 0; q < Q; ++q)
      out[q][t] = {vcvtq_f32_s32(total[q][0]), vcvtq_f32_s32(total[q][1]),
                   vcvtq_f32_s32(total[q][2]), vcvtq_f32_s32(total[q][3])};
  }
}

}  // namespace
}  // namespace slip
