// What blocks of attention_tiles.cuh share: what they compute, their shared memory, small
// functions.
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_sources.cuh"
#include "kernels/cuda/quads.cuh"

namespace slip {

inline constexpr int kChunk = kTilePositions;
inline constexpr int kTileWarps = kTileThreads / kWarp;
inline constexpr float kWeightExponent = 14;

// A row at p of a coded cache reads the page of position p + lead uncoded. Drafters ask about
// positions stored before, of heads wider than kTileDim alone; for others it is a constant.
template <class Cache>
__device__ __forceinline__ int lead(const TileParams& p) {
  if constexpr (Cache::kCoded && Cache::kDim > kTileDim)
    return p.lead;
  else
    return 0;
}

// Pages of a block that are looked up before anybody needs them.
inline constexpr int kListedPages = 16;
// Queries whose results have room in a block's shared memory, as floats in the place of f16.
inline constexpr int kTurnedBackAtOnce = kTileQueries / 2;

// What a block computes. It lies in shared memory, since registers are scarce.
struct TileWork {
  DeviceSpan span;
  int64_t begin, end;  // positions
  int64_t pages_end;   // up to here whole pages: of a coded cache, those that are read as codes
  int64_t rows_begin;  // position of the tile's first row
  int64_t rows_end;    // and behind the last one
  int32_t query_count;
  int32_t kv_head;
  int32_t partial_row;    // of the span's first row
  int32_t first_segment;  // that the span sees; blocks count from it
  bool alone;             // all that the tile's rows see lies in one segment, and results have room
  int32_t first_pages[kListedPages];

  __device__ void find(const TileParams& p, bool coded, int lead) {
    const int index = p.first_span + int(blockIdx.z) / p.kv_heads;
    const int first_query = int(blockIdx.x) * p.block_queries;
    span = p.spans[index];
    kv_head = int(blockIdx.z) % p.kv_heads;
    query_count = min(p.block_queries, span.rows * p.group - first_query);
    begin = end = 0;
    alone = false;
    const bool split = p.segments > 0;
    if (query_count <= 0 || (span.rows <= kSplitRows) != split) return;  // another launch's
    rows_begin = span.start + first_query / p.group;
    rows_end = span.start + (first_query + query_count - 1) / p.group + 1;
    const Segments segments = Segments::of_layer(p.window);
    first_segment = split ? int32_t(segments.first_seen(span.start, p.window)) : 0;
    begin = split ? segments.begin(first_segment + blockIdx.y) : 0;
    if (p.window > 0) {  // the first row looks back furthest; of segments, all tiles do the same
      const int64_t seen = max((split ? span.start : rows_begin) + 1 - p.window, int64_t(0));
      begin = max(begin, seen - seen % kChunk);
    }
    alone = p.counters != nullptr && first_segment == segments.of(rows_end - 1) &&
            (!coded || query_count <= kTurnedBackAtOnce);
    end = split ? min(segments.begin(first_segment + blockIdx.y + 1), rows_end) : rows_end;
    const int64_t readable = coded ? min(end, rows_end - 1 + lead) : end;
    pages_end = readable - readable % kChunk;
    partial_row = 0;
#pragma unroll 1
    for (int i = p.first_span; i < index && split; ++i)
      if (p.spans[i].rows <= kSplitRows) partial_row += p.spans[i].rows;
  }

  // Looks up the first pages, a thread each: whoever needs one later does not wait for it.
  __device__ void list_pages(const TileParams& p, bool coded) {
    const int64_t chunk = begin + int64_t(threadIdx.x) * kChunk;
    if (threadIdx.x < kListedPages && chunk < (coded ? pages_end : end))
      first_pages[threadIdx.x] = int32_t(span.page(chunk / kChunk, p.ring_pages));
  }
  __device__ int64_t page(int64_t chunk, int ring_pages) const {
    const int64_t index = (chunk - begin) / kChunk;
    return index < kListedPages ? first_pages[index] : span.page(chunk / kChunk, ring_pages);
  }
};

template <int kDim, int kTiles>
struct TileShared {
  static constexpr int kQueries = kTiles * kTileQueries;
  TileWork work;
  uint4 queries[kQueries][kDim / 8];    // f16
  uint4 weights[kQueries][kChunk / 8];  // f16
  float maxima[kTileWarps][kQueries];   // of a chunk; in the end, denominators
  float scales[kTileWarps];             // largest of the values of a chunk
  float factors[kQueries];              // of scores
  int rows[kQueries];                   // of the span

  // What a block that is alone has of a coded query, which is still to be turned back.
  __device__ float* result(int query) { return reinterpret_cast<float*>(queries) + query * kDim; }
};

// Units of 16 bytes of a row are permuted, so that neither reading operands (eight lanes: two rows,
// four units in line) nor writing weights (eight rows, one unit) meets a bank twice.
__device__ __forceinline__ int swizzled(int row, int unit) {
  return unit ^ ((row & 1) << 2 | (row >> 1 & 3));
}

// swizzled(g, 4 * i + j) of a lane, as a sum with two terms, so that it takes two registers for all
// i.
struct OperandUnits {
  int even, odd;
  __device__ __forceinline__ OperandUnits() {
    const int g = lane_id() / 4, j = lane_id() % 4;
    even = swizzled(g, j);
    odd = swizzled(g, 4 + j) - 4;
  }
  __device__ __forceinline__ int at(int i) const { return 4 * i + (i % 2 == 0 ? even : odd); }
};

__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

}  // namespace slip
