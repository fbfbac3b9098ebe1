// Linear layers, 16 outputs per vector. Included once per instruction set, after dot_<isa>.h.
//
// Every output is summed over its inputs one by one (or group by group) in one chain, however many
// rows or blocks are computed beside it: that is what makes the results row-invariant.
#pragma once

#include "kernels/cpu/simd/loops.h"

namespace slip {
namespace {

// How far ahead of use weights are asked for when few rows use them: they come from memory, once,
// and the hardware's own prefetching leaves a third of the bandwidth unused.
constexpr int64_t kPrefetchBytes = 2048;

inline void store_block(const LinearTile& tile, int64_t row, int64_t block, F32x16 value) {
  const int64_t offset = block * kLanes;
  float* out = tile.out + row * tile.out_stride + offset;
  if (offset + kLanes <= tile.out_count) {
    store(out, tile.add ? add(load(out), value) : value);
    return;
  }
  float lanes[kLanes];  // the weight's last block may be short
  store(lanes, value);
  for (int64_t i = 0; offset + i < tile.out_count; ++i) out[i] = (tile.add ? out[i] : 0) + lanes[i];
}

// How a float format turns 16 stored values of one input into f32.
struct StoredF32 {
  static constexpr int64_t kBytes = 4;
  static F32x16 decode(const std::byte* p) { return load(reinterpret_cast<const float*>(p)); }
};
struct StoredBf16 {
  static constexpr int64_t kBytes = 2;
  static F32x16 decode(const std::byte* p) {
    return load_bf16(reinterpret_cast<const uint16_t*>(p));
  }
};
struct StoredF16 {
  static constexpr int64_t kBytes = 2;
  static F32x16 decode(const std::byte* p) {
    return load_f16(reinterpret_cast<const uint16_t*>(p));
  }
};
struct StoredFp8 {
  static constexpr int64_t kBytes = 1;
  static F32x16 decode(const std::byte* p) {
    return load_fp8_over_256(reinterpret_cast<const uint8_t*>(p));
  }
};

// B blocks x T rows, inputs [begin, end); `factor` multiplies the weights (FP8 blocks).
template <class Stored, int B, int T, bool kScaled>
inline void float_chain(const LinearTile& tile, int64_t block, int64_t row, int64_t begin,
                        int64_t end, const float* factors, F32x16 (&total)[B][T]) {
  const int64_t block_bytes = tile.in * kLanes * Stored::kBytes;
  const std::byte* weight = tile.weight + (tile.first_block + block) * block_bytes;
  F32x16 factor[B];
  if constexpr (kScaled)
    for (int b = 0; b < B; ++b) factor[b] = set1(factors[b]);
  for (int64_t i = begin; i < end; ++i) {
    F32x16 x[T];
    for (int t = 0; t < T; ++t) x[t] = set1(tile.rows[row + t].values[i]);
    for (int b = 0; b < B; ++b) {
      const std::byte* stored = weight + b * block_bytes + i * kLanes * Stored::kBytes;
      if constexpr (T <= 3) __builtin_prefetch(stored + kPrefetchBytes);
      F32x16 w = Stored::decode(stored);
      if constexpr (kScaled) w = mul(w, factor[b]);
      for (int t = 0; t < T; ++t) total[b][t] = fma(w, x[t], total[b][t]);
    }
  }
}

template <class Stored, int B, int T>
inline void float_tile(const LinearTile& tile, int64_t block, int64_t row) {
  F32x16 total[B][T];
  for (int b = 0; b < B; ++b)
    for (int t = 0; t < T; ++t) total[b][t] = zero();
  if constexpr (Stored::kBytes == 1) {
    constexpr int64_t kBlock = 128;
    const int64_t columns = (tile.in + kBlock - 1) / kBlock;
    for (int64_t c = 0; c < columns; ++c) {
      float factors[B];
      for (int b = 0; b < B; ++b) {
        const int64_t scale_row = (tile.first_block + block + b) * kLanes / kBlock;
        factors[b] = tile.scales[scale_row * columns + c] * 256.0f;
      }
      const int64_t end = (c + 1) * kBlock < tile.in ? (c + 1) * kBlock : tile.in;
      float_chain<Stored, B, T, true>(tile, block, row, c * kBlock, end, factors, total);
    }
  } else {
    float_chain<Stored, B, T, false>(tile, block, row, 0, tile.in, nullptr, total);
  }
  for (int b = 0; b < B; ++b)
    for (int t = 0; t < T; ++t) store_block(tile, row + t, block + b, total[b][t]);
}

// Many rows: each decoded weight serves six rows, and a block stays in the first-level cache for
// all of them. Few rows: several blocks keep as many chains busy.
template <class Stored>
void linear_float(const LinearTile& tile) {
  const int64_t by_six = tile.row_count / 6 * 6;
  for (int64_t block = 0; block < tile.blocks; ++block)
    for (int64_t row = 0; row < by_six; row += 6) float_tile<Stored, 1, 6>(tile, block, row);
  int64_t row = by_six;
  for (; row + 3 <= tile.row_count; row += 3) {
    int64_t block = 0;
    for (; block + 2 <= tile.blocks; block += 2) float_tile<Stored, 2, 3>(tile, block, row);
    for (; block < tile.blocks; ++block) float_tile<Stored, 1, 3>(tile, block, row);
  }
  for (; row < tile.row_count; ++row) {
    int64_t block = 0;
    for (; block + 4 <= tile.blocks; block += 4) float_tile<Stored, 4, 1>(tile, block, row);
    for (; block < tile.blocks; ++block) float_tile<Stored, 1, 1>(tile, block, row);
  }
}

// int4 block: per group 16 scales (f16), then group / 8 chunks of 64 bytes.
template <int T>
inline void int4_tile(const LinearTile& tile, int64_t block, int64_t row) {
  const int64_t groups = tile.in / tile.group;
  const int64_t chunks = tile.group / 8;
  const int64_t group_bytes = 2 * kLanes + chunks * 64;
  const std::byte* weight = tile.weight + (tile.first_block + block) * groups * group_bytes;
  F32x16 total[T];
  for (int t = 0; t < T; ++t) total[t] = zero();
  for (int64_t g = 0; g < groups; ++g, weight += group_bytes) {
    const int8_t* x[T];
    int32_t offsets[T];  // codes are stored plus eight
    for (int t = 0; t < T; ++t) {
      x[t] = tile.rows[row + t].codes + 2 * g * tile.group;
      offsets[t] = -8 * tile.rows[row + t].sums[g];
    }
    F32x16 dots[T];
    if constexpr (T <= 2)
      for (int64_t line = 0; line < group_bytes; line += 64)
        __builtin_prefetch(weight + kPrefetchBytes + line);
    int4_dot<T>(reinterpret_cast<const uint8_t*>(weight) + 2 * kLanes, chunks, x, offsets, dots);
    const F32x16 scales = load_f16(reinterpret_cast<const uint16_t*>(weight));
    for (int t = 0; t < T; ++t)
      total[t] = fma(dots[t], mul(scales, set1(tile.rows[row + t].scales[g])), total[t]);
  }
  for (int t = 0; t < T; ++t) store_block(tile, row + t, block, total[t]);
}

// int8 block: ceil(in / 4) chunks of 64 bytes; one scale per output.
template <int T>
inline void int8_tile(const LinearTile& tile, int64_t block, int64_t row) {
  const int64_t chunks = (tile.in + 3) / 4;
  const int64_t group_chunks = kActivationGroup / 4;
  const auto* codes =
      reinterpret_cast<const int8_t*>(tile.weight) + (tile.first_block + block) * chunks * 64;
  F32x16 total[T];
  for (int t = 0; t < T; ++t) total[t] = zero();
  for (int64_t begin = 0, g = 0; begin < chunks; begin += group_chunks, ++g) {
    const int64_t count = begin + group_chunks < chunks ? group_chunks : chunks - begin;
    const int8_t* x[T];
    for (int t = 0; t < T; ++t) x[t] = tile.rows[row + t].codes + begin * 8;
    F32x16 dots[T];
    int8_dot<T>(codes + begin * 64, count, x, dots);
    for (int t = 0; t < T; ++t)
      total[t] = fma(dots[t], set1(tile.rows[row + t].scales[g]), total[t]);
  }
  const F32x16 scales = load(tile.scales + (tile.first_block + block) * kLanes);
  for (int t = 0; t < T; ++t) store_block(tile, row + t, block, mul(total[t], scales));
}

void linear_int4(const LinearTile& tile) {
  for (int64_t block = 0; block < tile.blocks; ++block) {
    int64_t row = 0;
    for (; row + kInt4Rows <= tile.row_count; row += kInt4Rows)
      int4_tile<kInt4Rows>(tile, block, row);
    for (; row + 2 <= tile.row_count; row += 2) int4_tile<2>(tile, block, row);
    for (; row < tile.row_count; ++row) int4_tile<1>(tile, block, row);
  }
}

void linear_int8(const LinearTile& tile) {
  for (int64_t block = 0; block < tile.blocks; ++block) {
    int64_t row = 0;
    for (; row + 4 <= tile.row_count; row += 4) int8_tile<4>(tile, block, row);
    for (; row + 2 <= tile.row_count; row += 2) int8_tile<2>(tile, block, row);
    for (; row < tile.row_count; ++row) int8_tile<1>(tile, block, row);
  }
}

}  // namespace
}  // namespace slip
