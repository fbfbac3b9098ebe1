// Integer dot products on NEON with FEAT_I8MM. See dot_avx512.h for the layout of weights.
//
// An instruction multiplies a matrix of 2 x 8 bytes with one of 8 x 2: the high and the low bytes
// of eight activations of a row with eight inputs of two outputs. That is twice the products of
// lanes_neon.h, for which weights are brought into order once for all rows.
// x in two bytes: per eight inputs eight high bytes, then eight low bytes. In one byte a row has
// only half a matrix, and is left to lanes_neon.h.
#pragma once

#include "kernels/cpu/simd/lanes_neon.h"

namespace slip {
namespace {

// Rows that share weights. Unpacking takes 16 instructions per chunk of 64 bytes of int4 and a
// row's products 8. With six rows g++ 12 spills sums.
constexpr int kInt4Rows = 5;
constexpr int kInt8Rows = 5;

// Integral values of at most 16 bits, as the dot products want them.
template <int kBytes>
inline void store_activations(int8_t* p, F32x16 values) {
  if constexpr (kBytes == 1) return store_for_lanes<1>(p, values);
  const auto [high, low] = split_bytes(values);
  const int64x2_t h = vreinterpretq_s64_s8(high), l = vreinterpretq_s64_s8(low);
  vst1q_s8(p, vreinterpretq_s8_s64(vzip1q_s64(h, l)));
  vst1q_s8(p + 16, vreinterpretq_s8_s64(vzip2q_s64(h, l)));
}

// Sums of T rows for Q registers of four outputs each. A register has the sums of two outputs: with
// high bytes in lanes 0 and 1, with low bytes in lanes 2 and 3.
template <int T, int Q>
struct MatrixSums {
  int32x4_t part[T][2 * Q];

  explicit MatrixSums(const int32_t* offsets) {
    for (int t = 0; t < T; ++t)
      for (int32x4_t& two : part[t]) two = vcombine_s32(vdup_n_s32(0), vdup_n_s32(offsets[t]));
  }
  // Bytes of four outputs: inputs 0 to 3 and inputs 4 to 7 of those in x.
  void add(int q, int8x16_t first, int8x16_t second, const int8x16_t (&x)[T]) {
    const int32x4_t a = vreinterpretq_s32_s8(first), b = vreinterpretq_s32_s8(second);
    const int8x16_t w0 = vreinterpretq_s8_s32(vzip1q_s32(a, b));
    const int8x16_t w1 = vreinterpretq_s8_s32(vzip2q_s32(a, b));
    for (int t = 0; t < T; ++t) {
      part[t][2 * q] = vmmlaq_s32(part[t][2 * q], x[t], w0);
      part[t][2 * q + 1] = vmmlaq_s32(part[t][2 * q + 1], x[t], w1);
    }
  }
  float32x4_t total(int t, int q) const {
    const int64x2_t a = vreinterpretq_s64_s32(part[t][2 * q]);
    const int64x2_t b = vreinterpretq_s64_s32(part[t][2 * q + 1]);
    const int32x4_t high = vreinterpretq_s32_s64(vzip1q_s64(a, b));
    const int32x4_t low = vreinterpretq_s32_s64(vzip2q_s64(a, b));
    return vcvtq_f32_s32(vaddq_s32(low, vshlq_n_s32(high, 8)));
  }
};

template <int T>
inline void int4_matrix_dot(const uint8_t* codes, int64_t chunks, const int8_t* const* x,
                            const int32_t* offsets, F32x16* out) {
  constexpr int Q = quads_at_once(2, T);
  const uint8x16_t nibble = vdupq_n_u8(15);
  for_quads<2, T>([&](auto first) {
    MatrixSums<T, Q> sums(offsets);
    for (int64_t c = 0; c < chunks; ++c) {
      int8x16_t inputs[T];
      load_inputs(x, c * 16, inputs);
      for (int q = 0; q < Q; ++q) {
        const uint8x16_t packed = vld1q_u8(codes + c * 64 + 16 * (first + q));
        sums.add(q, vreinterpretq_s8_u8(vandq_u8(packed, nibble)),
                 vreinterpretq_s8_u8(vshrq_n_u8(packed, 4)), inputs);
      }
    }
    store_quads<first, T, Q>(sums, out);
  });
}

template <int T>
inline void int8_matrix_dot(const int8_t* codes, int64_t chunks, const int8_t* const* x,
                            F32x16* out) {
  constexpr int Q = quads_at_once(2, T);
  const int32_t offsets[T] = {};
  for_quads<2, T>([&](auto first) {
    MatrixSums<T, Q> sums(offsets);
    int8x16_t inputs[T];
    const int8_t* chunk = codes + 16 * first;
    int64_t c = 0;
    for (; c + 2 <= chunks; c += 2, chunk += 128) {
      load_inputs(x, c * 8, inputs);
      for (int q = 0; q < Q; ++q)
        sums.add(q, vld1q_s8(chunk + 16 * q), vld1q_s8(chunk + 64 + 16 * q), inputs);
    }
    if (c < chunks) {  // rows are padded to 16 inputs
      load_inputs(x, c * 8, inputs);
      for (int q = 0; q < Q; ++q) sums.add(q, vld1q_s8(chunk + 16 * q), vdupq_n_s8(0), inputs);
    }
    store_quads<first, T, Q>(sums, out);
  });
}

// out[t] = offsets[t] + sum over chunks of unsigned code * x
template <int kBytes, int T>
inline void int4_dot(const uint8_t* codes, int64_t chunks, const int8_t* const* x,
                     const int32_t* offsets, F32x16* out) {
  if constexpr (kBytes == 1) {
    int4_lane_dot<1, T>(codes, chunks, x, offsets, out);
  } else {
    int4_matrix_dot<T>(codes, chunks, x, offsets, out);
  }
}

// out[t] = sum over chunks of code * x
template <int kBytes, int T>
inline void int8_dot(const int8_t* codes, int64_t chunks, const int8_t* const* x,
                     const int32_t* /*totals*/, F32x16* out) {
  if constexpr (kBytes == 1) {
    int8_lane_dot<1, T>(codes, chunks, x, out);
  } else {
    int8_matrix_dot<T>(codes, chunks, x, out);
  }
}

}  // namespace
}  // namespace slip
