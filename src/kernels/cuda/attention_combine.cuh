// The sum over few segments by the block that finishes last, instead of by a launch of its own
// (combine_kernel, attention.cu): the same operations in the same order, so that both give the same
// bits.
#pragma once

#include "kernels/cuda/attention_work.cuh"
#include "kernels/cuda/last_block.cuh"

namespace slip {

// How much each of several segments counts in the sum of one query; segment i is lane i % 32's, so
// that whatever else is looked through, it is added to the same.
static_assert(kFewSegments <= kWarp);
struct SegmentWeights {
  float weight = 0, denominator = 0;

  __device__ __forceinline__ SegmentWeights() = default;
  __device__ __forceinline__ SegmentWeights(float2 stats, bool counts) {
    const float largest = warp_max(stats.x);
    weight = counts ? exp2f(stats.x - largest) : 0.0f;
    denominator = warp_sum(fmaf(weight, stats.y, 0.0f));
  }
};

// Where the result of a block's query belongs.
__device__ __forceinline__ float* place_of(const TileParams& p, const TileWork& work, int query,
                                           int dim) {
  const int index = int(blockIdx.x) * p.block_queries + query, row = index / p.group;
  const int head = work.kv_head * p.group + index % p.group;
  return p.out + ((int64_t(work.span.first_row) + row) * p.q_heads + head) * dim;
}

// Turns back what a block that is alone has of its queries.
template <int kDim>
__device__ __forceinline__ void leave_turned_back(const TileParams& p, const TileWork& work,
                                                  const float* results) {
#pragma unroll 1
  for (int query = warp_id(); query < work.query_count; query += kTileWarps) {
    float totals[kDim / kWarp];
#pragma unroll
    for (int e = 0; e < kDim / kWarp; ++e)
      totals[e] = results[query * kDim + lane_id() + kWarp * e];
    unrotate_in_registers(totals, p.value_signs);
    float* out = place_of(p, work, query, kDim);
#pragma unroll
    for (int e = 0; e < kDim / kWarp; ++e) out[lane_id() + kWarp * e] = totals[e];
  }
}

template <int kDim, bool kCoded>
__device__ __forceinline__ void combine_segments(const TileParams& p, const TileWork& work) {
  if (work.query_count <= 0 || work.span.rows > kSplitRows) return;  // another launch's
  const int lane = lane_id();
#pragma unroll 1
  for (int query = warp_id(); query < work.query_count; query += kTileWarps) {
    const int index = int(blockIdx.x) * p.block_queries + query, row = index / p.group;
    const int head = work.kv_head * p.group + index % p.group;
    const int count = int(Segments::of_layer(p.window).count(work.span.start + row + 1));
    const int begin = work.first_segment;
    const int64_t at = (int64_t(work.partial_row + row) * p.q_heads + head) * p.segments;
    const int own = (lane - begin) & (kWarp - 1);  // of those from `begin` on
    const bool counts = begin + own < count;
    const float2 stats =
        counts ? __ldcg(p.partials.stats + at + own) : make_float2(-INFINITY, 0.0f);
    // As combine_kernel deals them out: share i has segments i, i + kShares, ... A lane has values
    // lane + 32 e of each.
    constexpr int kShares = kCombineThreads / (kDim / 4), kValues = kDim / kWarp;
    const float* sums = p.partials.sums + at * kDim + lane;
    float shares[kShares][kValues] = {};
    SegmentWeights weights;
    const int start = begin / kShares * kShares;
    constexpr int kAtOnce = kCoded ? kShares / 2 : kShares;  // on their way: as registers allow
#pragma unroll 1
    for (int first = start; first < count; first += kShares) {
#pragma unroll
      for (int done = 0; done < kShares; done += kAtOnce) {
        float values[kAtOnce][kValues];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int segment = first + done + i;
          const bool there = segment >= begin && segment < count;
#pragma unroll
          for (int e = 0; e < kValues; ++e)
            values[i][e] = there ? __ldcg(sums + (segment - begin) * kDim + kWarp * e) : 0.0f;
        }
        if (first == start && done == 0) weights = SegmentWeights(stats, counts);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const float weight = __shfl_sync(~0u, weights.weight, (first + done + i) % kWarp);
#pragma unroll
          for (int e = 0; e < kValues; ++e)
            shares[done + i][e] = fmaf(weight, values[i][e], shares[done + i][e]);
        }
      }
    }
    const float factor = __fmul_rn(reciprocal(weights.denominator), p.value_factor);
    float totals[kValues];
#pragma unroll
    for (int e = 0; e < kValues; ++e) {
      totals[e] = shares[0][e];
#pragma unroll
      for (int i = 1; i < kShares; ++i) totals[e] += shares[i][e];
    }
#pragma unroll
    for (int e = 0; e < kValues; ++e) totals[e] = __fmul_rn(totals[e], factor);
    if constexpr (kCoded) unrotate_in_registers(totals, p.value_signs);
    float* out = place_of(p, work, query, kDim);
#pragma unroll
    for (int e = 0; e < kValues; ++e) out[lane + kWarp * e] = totals[e];
  }
}

}  // namespace slip
