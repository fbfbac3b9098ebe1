// Integer dot products by FEAT_DotProd, for dot_neon.h and dot_i8mm.h: 16 outputs, T rows of
// activations in one or two bytes. See dot_avx512.h for the layout of weights and activations.
//
// An instruction multiplies four outputs' bytes of four inputs with four activations, which it
// takes from one lane of a register: sixteen bytes of activations are loaded once and serve as many
// inputs, without a broadcast per product. Both sides are signed, which codes of 0 to 15 are too.
#pragma once

#include <type_traits>

#include "kernels/cpu/simd/vec_neon.h"

namespace slip {
namespace {

// Sums of 16 floats that fit into the registers beside what feeds them, and rows among them: 20
// registers of sums, four of weights and one of each row's input. A sixth leaves no room for the
// scheduler: some are then spilled.
constexpr int kFloatChains = 5;
constexpr int kFloatRows = 5;

// Queries of attention that are computed together, and the keys they meet at a time: 16 registers
// of sums, eight of keys, four of a query.
constexpr int kQueries = 2;
constexpr int kScoreKeys = 2;

// Integral values of at most 16 bits as 256 * high + low.
struct SplitBytes {
  int8x16_t high, low;
};
inline SplitBytes split_bytes(F32x16 values) {
  const int16x8_t first = to_int16(values.a, values.b), second = to_int16(values.c, values.d);
  return {vrshrn_high_n_s16(vrshrn_n_s16(first, 8), second, 8),
          vmovn_high_s16(vmovn_s16(first), second)};
}

// Integral values of at most 16 bits, as the dot products want them.
template <int kBytes>
inline void store_for_lanes(int8_t* p, F32x16 values) {
  const auto [high, low] = split_bytes(values);
  if constexpr (kBytes == 1) {
    vst1q_s8(p, low);
  } else {
    const int32x4_t h = vreinterpretq_s32_s8(high), l = vreinterpretq_s32_s8(low);
    vst1q_s8(p, vreinterpretq_s8_s32(vzip1q_s32(h, l)));
    vst1q_s8(p + 16, vreinterpretq_s8_s32(vzip2q_s32(h, l)));
  }
}

// Sums of products with the high and the low bytes of T rows, for Q registers of four outputs each.
template <int kBytes, int T, int Q>
struct ByteSums {
  int32x4_t part[T][kBytes][Q];

  explicit ByteSums(const int32_t* offsets) {
    for (int t = 0; t < T; ++t)
      for (int b = 0; b < kBytes; ++b)
        for (int q = 0; q < Q; ++q) part[t][b][q] = vdupq_n_s32(b == kBytes - 1 ? offsets[t] : 0);
  }
  // w: four outputs' bytes of four inputs, which are the ones numbered kFour in x.
  template <int kFour>
  void add(int q, int8x16_t w, const int8x16_t (&x)[T]) {
    for (int t = 0; t < T; ++t) {
      part[t][0][q] = vdotq_laneq_s32(part[t][0][q], w, x[t], kFour * kBytes);
      if constexpr (kBytes == 2)
        part[t][1][q] = vdotq_laneq_s32(part[t][1][q], w, x[t], kFour * kBytes + 1);
    }
  }
  float32x4_t total(int t, int q) const {
    const int32x4_t last = part[t][kBytes - 1][q];
    if constexpr (kBytes == 1) return vcvtq_f32_s32(last);
    return vcvtq_f32_s32(vaddq_s32(last, vshlq_n_s32(part[t][0][q], 8)));
  }
};

// How many of the four registers of outputs are summed at a time. Where all four have more than 16
// registers of sums, g++ 12 spills some, so the outputs are done in two halves: each reads its own
// weights, and the activations again.
constexpr int quads_at_once(int bytes, int rows) { return bytes * rows <= 4 ? 4 : 2; }

template <int N>
using Constant = std::integral_constant<int, N>;

// Calls run(first) with the first of the registers that are summed at a time.
template <int kBytes, int T, class Run>
inline void for_quads(const Run& run) {
  run(Constant<0>{});
  if constexpr (quads_at_once(kBytes, T) == 2) run(Constant<2>{});
}

// Into the registers of `out` from number kFirst on.
template <int kFirst, int T, int Q, class Sums>
inline void store_quads(const Sums& sums, F32x16* out) {
  for (int t = 0; t < T; ++t) {
    if constexpr (Q == 4) {
      out[t] = {sums.total(t, 0), sums.total(t, 1), sums.total(t, 2), sums.total(t, 3)};
    } else if constexpr (kFirst == 0) {
      out[t].a = sums.total(t, 0), out[t].b = sums.total(t, 1);
    } else {
      out[t].c = sums.total(t, 0), out[t].d = sums.total(t, 1);
    }
  }
}

template <int T>
inline void load_inputs(const int8_t* const* x, int64_t offset, int8x16_t (&inputs)[T]) {
  for (int t = 0; t < T; ++t) inputs[t] = vld1q_s8(x[t] + offset);
}

// out[t] = offsets[t] + sum over chunks of unsigned code * x. Chunks come in pairs.
template <int kBytes, int T>
inline void int4_lane_dot(const uint8_t* codes, int64_t chunks, const int8_t* const* x,
                          const int32_t* offsets, F32x16* out) {
  constexpr int kTogether = 2 / kBytes;  // chunks whose inputs fill a register
  constexpr int Q = quads_at_once(kBytes, T);
  const uint8x16_t nibble = vdupq_n_u8(15);
  for_quads<kBytes, T>([&](auto first) {
    ByteSums<kBytes, T, Q> sums(offsets);
    int8x16_t inputs[T];
    const auto add_chunk = [&]<int kChunk>(Constant<kChunk>, int64_t c) {
      for (int q = 0; q < Q; ++q) {
        const uint8x16_t packed = vld1q_u8(codes + (c + kChunk) * 64 + 16 * (first + q));
        const int8x16_t low = vreinterpretq_s8_u8(vandq_u8(packed, nibble));
        const int8x16_t high = vreinterpretq_s8_u8(vshrq_n_u8(packed, 4));
        sums.template add<2 * kChunk>(q, low, inputs);
        sums.template add<2 * kChunk + 1>(q, high, inputs);
      }
    };
    for (int64_t c = 0; c < chunks; c += kTogether) {
      load_inputs(x, c * 8 * kBytes, inputs);
      add_chunk(Constant<0>{}, c);
      if constexpr (kTogether == 2) add_chunk(Constant<1>{}, c);
    }
    store_quads<first, T, Q>(sums, out);
  });
}

// out[t] = sum over chunks of code * x
template <int kBytes, int T>
inline void int8_lane_dot(const int8_t* codes, int64_t chunks, const int8_t* const* x,
                          F32x16* out) {
  constexpr int kTogether = 4 / kBytes;  // chunks whose inputs fill a register
  constexpr int Q = quads_at_once(kBytes, T);
  const int32_t offsets[T] = {};
  for_quads<kBytes, T>([&](auto first) {
    ByteSums<kBytes, T, Q> sums(offsets);
    int8x16_t inputs[T];
    const auto add_chunk = [&]<int kChunk>(Constant<kChunk>, int64_t c) {
      for (int q = 0; q < Q; ++q)
        sums.template add<kChunk>(q, vld1q_s8(codes + (c + kChunk) * 64 + 16 * (first + q)),
                                  inputs);
    };
    int64_t c = 0;
    for (; c + kTogether <= chunks; c += kTogether) {
      load_inputs(x, c * 4 * kBytes, inputs);
      add_chunk(Constant<0>{}, c);
      add_chunk(Constant<1>{}, c);
      if constexpr (kTogether == 4) {
        add_chunk(Constant<2>{}, c);
        add_chunk(Constant<3>{}, c);
      }
    }
    for (; c < chunks; ++c) {  // rows are padded to 16 inputs: eight bytes can be read
      for (int t = 0; t < T; ++t)
        inputs[t] = vcombine_s8(vld1_s8(x[t] + c * 4 * kBytes), vdup_n_s8(0));
      add_chunk(Constant<0>{}, c);
    }
    store_quads<first, T, Q>(sums, out);
  });
}

}  // namespace
}  // namespace slip
