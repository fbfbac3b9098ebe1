// Linear layers, 16 outputs per vector. Included once per instruction set, after dot_<isa>.h.
//
// Every output is summed over its inputs one by one (or group by group) in one chain, however many
// rows or blocks are computed beside it: that is what makes the results row-invariant.
#pragma once

#include <type_traits>

#include "kernels/cpu/simd/loops.h"

namespace slip {
namespace {

// How far ahead of use weights are asked for when few rows use them: they come from memory, once,
// and the hardware's own prefetching leaves a third of the bandwidth unused. Into the second-level
// cache: the first cannot wait for so many lines at once.
constexpr int64_t kPrefetchBytes = 8192;
inline void ask_for(const void* weights) { __builtin_prefetch(weights, 0, 2); }

// Many rows stay with a block for long: the first tile of rows asks for the block behind it.
template <int T>
constexpr bool asks_for_next_block(int64_t row) {
  return T > 3 && row == 0;
}

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
// FP8 is read as value * 2^-120, which costs no multiplication. Inputs are raised by 2^80 instead,
// so that products stay clear of the smallest floats (inputs must be below 1e14), and the rest goes
// into the block's scale.
struct StoredFp8 {
  static constexpr int64_t kBytes = 1;
  static constexpr float kInputFactor = 0x1p80f;
  static constexpr float kScaleFactor = 0x1p40f;
  static F32x16 decode(const std::byte* p) {
    return load_fp8_bits(reinterpret_cast<const uint8_t*>(p));
  }
};

// total += weights * inputs, for B blocks x T rows and inputs [begin, end). The sums have a place
// of their own here, where all indices are constants: g++ 12 would leave some of `total` in memory.
template <class Stored, int B, int T>
inline void float_chain(const LinearTile& tile, int64_t block, int64_t row, int64_t begin,
                        int64_t end, F32x16 (&total)[B][T]) {
  const int64_t block_bytes = tile.in * kLanes * Stored::kBytes;
  const std::byte* weight = tile.weight + (tile.first_block + block) * block_bytes;
  const float* inputs[T];
  for (int t = 0; t < T; ++t) inputs[t] = tile.rows[row + t].values;
  F32x16 sums[B][T];
  for (int b = 0; b < B; ++b)
    for (int t = 0; t < T; ++t) sums[b][t] = total[b][t];
  for (int64_t i = begin; i < end; ++i) {
    const std::byte* stored = weight + i * kLanes * Stored::kBytes;
    if (asks_for_next_block<T>(row) && i * kLanes * Stored::kBytes % 64 == 0)
      for (int b = 0; b < B; ++b) ask_for(stored + (B + b) * block_bytes);
    F32x16 x[T];
    for (int t = 0; t < T; ++t) {
      x[t] = set1(inputs[t][i]);
      if constexpr (Stored::kBytes == 1) x[t] = mul(x[t], set1(Stored::kInputFactor));
    }
#pragma GCC unroll 9
    for (int b = 0; b < B; ++b) {
      if constexpr (T <= 3) ask_for(stored + b * block_bytes + kPrefetchBytes);
      const F32x16 w = Stored::decode(stored + b * block_bytes);
      for (int t = 0; t < T; ++t) sums[b][t] = fma(w, x[t], sums[b][t]);
    }
  }
  for (int b = 0; b < B; ++b)
    for (int t = 0; t < T; ++t) total[b][t] = sums[b][t];
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
      F32x16 part[B][T];
      for (int b = 0; b < B; ++b)
        for (int t = 0; t < T; ++t) part[b][t] = zero();
      const int64_t end = (c + 1) * kBlock < tile.in ? (c + 1) * kBlock : tile.in;
      float_chain<Stored, B, T>(tile, block, row, c * kBlock, end, part);
      for (int b = 0; b < B; ++b) {
        const int64_t scale_row = (tile.first_block + block + b) * kLanes / kBlock;
        const F32x16 scale = set1(tile.scales[scale_row * columns + c] * Stored::kScaleFactor);
        for (int t = 0; t < T; ++t) total[b][t] = fma(part[b][t], scale, total[b][t]);
      }
    }
  } else {
    float_chain<Stored, B, T>(tile, block, row, 0, tile.in, total);
  }
  for (int b = 0; b < B; ++b)
    for (int t = 0; t < T; ++t) store_block(tile, row + t, block + b, total[b][t]);
}

// Calls run(rows, first_row) for tiles of at most kMost rows, `rows` being known to the compiler:
// weights are read and decoded once for all rows of a tile.
template <int kMost, class Run>
inline void for_row_tiles(int64_t row_count, const Run& run) {
  int64_t row = 0;
  for (; row + kMost <= row_count; row += kMost) run(std::integral_constant<int, kMost>{}, row);
  const auto rest = [&]<int kRows>(const auto& self, std::integral_constant<int, kRows> rows) {
    if constexpr (kRows > 0) {
      if (row_count - row == kRows) return run(rows, row);
      self(self, std::integral_constant<int, kRows - 1>{});
    }
  };
  rest(rest, std::integral_constant<int, kMost - 1>{});
}

// Blocks beside each other, so that few rows keep as many chains busy as many, in the registers
// there are.
constexpr int blocks_beside(int rows) {
  return rows == 1 ? 4 : rows <= kFloatChains ? kFloatChains / rows : 1;
}

template <class Stored>
void linear_float(const LinearTile& tile) {
  for_row_tiles<kFloatRows>(tile.row_count, [&](auto rows, int64_t row) {
    constexpr int kBlocks = blocks_beside(rows);
    int64_t block = 0;
    for (; block + kBlocks <= tile.blocks; block += kBlocks)
      float_tile<Stored, kBlocks, rows>(tile, block, row);
    for (; block < tile.blocks; ++block) float_tile<Stored, 1, rows>(tile, block, row);
  });
}

// int4 block: per group 16 scales (f16), then group / 8 chunks of 64 bytes. kGroup: what the group
// is known to be, or 0.
template <int kBytes, int64_t kGroup, int T>
inline void int4_tile(const LinearTile& tile, int64_t block, int64_t row) {
  const int64_t group = kGroup > 0 ? kGroup : tile.group;
  const int64_t groups = tile.in / group;
  const int64_t chunks = group / 8;
  const int64_t group_bytes = 2 * kLanes + chunks * 64;
  const std::byte* weight = tile.weight + (tile.first_block + block) * groups * group_bytes;
  const std::byte* tile_end = tile.weight + (tile.first_block + tile.blocks) * groups * group_bytes;
  F32x16 total[T];
  for (int t = 0; t < T; ++t) total[t] = zero();
  for (int64_t g = 0; g < groups; ++g, weight += group_bytes) {
    const int8_t* x[T];
    int32_t offsets[T];  // codes are stored plus eight
    for (int t = 0; t < T; ++t) {
      x[t] = tile.rows[row + t].codes + kBytes * g * group;
      offsets[t] = -8 * tile.rows[row + t].sums[g];
    }
    F32x16 dots[T];
    if (T <= 2 || asks_for_next_block<T>(row)) {
      const std::byte* ahead = weight + (T <= 2 ? kPrefetchBytes : groups * group_bytes);
      const int64_t beyond = ahead - tile_end;
      if (beyond >= 0 && tile.next) ahead = tile.next + beyond;
      for (int64_t line = 0; line < group_bytes; line += 64) ask_for(ahead + line);
    }
    int4_dot<kBytes, T>(reinterpret_cast<const uint8_t*>(weight) + 2 * kLanes, chunks, x, offsets,
                        dots);
    const F32x16 scales = load_f16(reinterpret_cast<const uint16_t*>(weight));
    for (int t = 0; t < T; ++t)
      total[t] = fma(dots[t], mul(scales, set1(tile.rows[row + t].scales[g])), total[t]);
  }
  for (int t = 0; t < T; ++t) store_block(tile, row + t, block, total[t]);
}

// int8 block: ceil(in / 4) chunks of 64 bytes; one scale per output.
template <int kBytes, int T>
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
    int32_t sums[T];
    for (int t = 0; t < T; ++t) {
      x[t] = tile.rows[row + t].codes + begin * 4 * kBytes;
      sums[t] = tile.rows[row + t].sums[g];
    }
    F32x16 dots[T];
    if constexpr (T <= 2)
      for (int64_t line = 0; line < count * 64; line += 64)
        ask_for(codes + begin * 64 + kPrefetchBytes + line);
    int8_dot<kBytes, T>(codes + begin * 64, count, x, sums, dots);
    for (int t = 0; t < T; ++t)
      total[t] = fma(dots[t], set1(tile.rows[row + t].scales[g]), total[t]);
  }
  const F32x16 scales = load(tile.scales + (tile.first_block + block) * kLanes);
  for (int t = 0; t < T; ++t) store_block(tile, row + t, block, mul(total[t], scales));
}

// A block at a time, so that it stays in the first-level cache for all rows.
template <int kBytes, int64_t kGroup>
void linear_int4_groups(const LinearTile& tile) {
  for (int64_t block = 0; block < tile.blocks; ++block)
    for_row_tiles<kInt4Rows>(tile.row_count, [&](auto rows, int64_t row) {
      int4_tile<kBytes, kGroup, rows>(tile, block, row);
    });
}

// Most files have groups of 128, and a loop that knows its length is a fifth faster.
template <int kBytes>
void linear_int4(const LinearTile& tile) {
  if (tile.group == 128) return linear_int4_groups<kBytes, 128>(tile);
  linear_int4_groups<kBytes, 0>(tile);
}

template <int kBytes>
void linear_int8(const LinearTile& tile) {
  for (int64_t block = 0; block < tile.blocks; ++block)
    for_row_tiles<kInt8Rows>(
        tile.row_count, [&](auto rows, int64_t row) { int8_tile<kBytes, rows>(tile, block, row); });
}

}  // namespace
}  // namespace slip
