// Attention of this backend, in two ways.
//
// Tiles (attention_tiles.cuh) are for what models have: pages of 64, heads of 128, 256 or 512, keys
// and values in bf16, fp8 or, but for heads of 128, codes. A block computes some queries of one kv
// head over a range of positions on tensor cores. For spans of few rows the range is a segment of
// the context; sums over segments are left in scratch, and the last block, or where there are many
// a second launch, adds them up. Segments begin at fixed positions, so that a row's bits depend on
// its own position alone. For longer spans the range is everything.
//
// Any other shape (attention_any.cu) is computed in float, a block per row and head.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/spans.h"
#include "kernels/cuda/kv_codes.h"
#include "kernels/ops.h"

namespace slip {

inline constexpr int kSplitRows =
    int(kFewRows);  // most rows of a span that is computed in segments

// Segments have 64 positions at first, in which a block spends as long as in what is around them,
// and grow with the context: short contexts need many blocks, long ones few sums. A layer with a
// window has as many to look through wherever it is, so that they need not grow.
struct Segments {
  static constexpr int kTiers = 5;
  static constexpr int kFirstLength = 6;  // logarithms; of each tier one more than of the last
  int tiers = kTiers;

  // window: 0 if there is none.
  __host__ __device__ static Segments of_layer(int64_t window) {
    constexpr int64_t kShortWindow = 2048;
    return {window > 0 && window <= kShortWindow ? 2 : kTiers};
  }

  // Number of segments that positions [0, end) lie in.
  __host__ __device__ int64_t count(int64_t end) const {
    int64_t segments = 0, begin = 0;
    for (int tier = 0;; ++tier) {
      const int length = kFirstLength + tier;
      if (tier == tiers - 1 || end <= tier_end(tier))
        return segments + ((end - begin + (int64_t{1} << length) - 1) >> length);
      segments += (tier_end(tier) - begin) >> length;
      begin = tier_end(tier);
    }
  }

  // The segment that a position lies in.
  __host__ __device__ int64_t of(int64_t position) const { return count(position + 1) - 1; }

  // First position of a segment.
  __host__ __device__ int64_t begin(int64_t segment) const {
    int64_t first = 0;
    for (int tier = 0;; ++tier) {
      const int length = kFirstLength + tier;
      if (tier == tiers - 1) return first + (segment << length);
      const int64_t segments = (tier_end(tier) - first) >> length;
      if (segment < segments) return first + (segment << length);
      segment -= segments;
      first = tier_end(tier);
    }
  }

  // The first one that a span's rows see.
  __host__ __device__ int64_t first_seen(int64_t start, int64_t window) const {
    return window > 0 && start >= window ? of(start + 1 - window) : 0;
  }

  // As many as a span of few rows looks through at most, in contexts of so many positions.
  static int64_t most(int64_t window, int64_t context) {
    const Segments layer = of_layer(window);
    const int64_t all = layer.count(context);
    return window > 0 ? std::min(all, layer.count(window + kSplitRows) + 1) : all;
  }

 private:
  __host__ __device__ static constexpr int64_t tier_end(int tier) {
    // No table: kernels would keep it in memory.
    return int64_t{1} << (tier == 0 ? 9 : tier == 1 ? 13 : tier == 2 ? 14 : 16);
  }
};

// Sums of queries over segments: for each row of few, head and segment, from the first one on that
// the row's span sees.
struct Partials {
  float2* stats;  // [rows, q_heads, segments]: log2 of the unit, denominator
  float* sums;    // [rows, q_heads, segments, head_dim]
};
constexpr size_t partial_bytes(int64_t rows, int64_t q_heads, int64_t segments, int64_t head_dim) {
  return size_t(rows * q_heads * segments) * (sizeof(float2) + size_t(head_dim) * sizeof(float));
}

// Scratch that attention() may ask for in steps within these limits. Recordings serve contexts up
// to the next power of two.
inline size_t attention_scratch_bytes(const StepLimits& limits) {
  const auto context =
      int64_t(std::bit_ceil(uint64_t(limits.context > 256 ? limits.context : 256)));
  return partial_bytes(limits.rows < kSplitRows ? limits.rows : kSplitRows, limits.q_heads,
                       Segments{}.count(context), limits.head_dim);
}

// Magnitudes of a code book as f16, upper and lower bytes apart.
struct MagnitudeTable {
  uint32_t high[2], low[2];
};
MagnitudeTable magnitude_table(KvCodec codec);

struct TileParams {
  const float* q;
  float* out;
  const DeviceSpan* spans;

  const uint8_t* keys;
  const uint8_t* values;
  // Coded caches only.
  const uint16_t* key_scales;
  const uint16_t* value_scales;
  const uint16_t* key_tail;
  const uint16_t* value_tail;
  const float* k;  // rows of the step
  const float* v;
  MagnitudeTable key_table, value_table;
  SignBits signs;        // of keys, for queries
  SignBits value_signs;  // for sums of values

  int32_t first_span;  // of this launch
  int32_t q_heads, kv_heads;
  int32_t group;          // q_heads / kv_heads
  int32_t block_queries;  // of a kv head that a block takes
  int32_t segments;       // 0: one block sees all positions and writes to `out`
  int32_t ring_pages;     // plain caches: 0, or pages of each sequence's ring
  int32_t lead;           // coded caches: 1 if rows ask about positions stored before, or 0
  int64_t window;         // plain caches: positions that a row sees; 0: all before it
  float score_factor;     // log2(e) * scale, and what stored keys are short of
  float value_factor;     // what stored values are short of
  Partials partials;
  uint32_t* counters;  // of blocks that share queries; null: a second launch adds up segments
};

// Blocks are (tile of queries, segment, span and kv head), kTileThreads threads.
using TileKernel = void (*)(TileParams);
inline constexpr int kTileThreads = 128;
inline constexpr int kTileQueries = 16;
inline constexpr int kWholeTiles = 2;  // of a block that sees all positions

inline constexpr int kCombineThreads = 512;  // of the second launch
// So many segments are added up by the block that finishes last.
inline constexpr int kFewSegments = 16;

// Kernels for `tiles` (1 or 2) tiles of queries per block; null if there is none for such a cache.
TileKernel plain_tile_kernel(KvCodec codec, int64_t head_dim, int tiles);
TileKernel coded_tile_kernel(const KvRecipe& recipe, int64_t head_dim, int tiles);

// Any shape.
void attend_any(const Launcher& launcher, const AttentionArgs& args, const DeviceSpan* spans);

}  // namespace slip
