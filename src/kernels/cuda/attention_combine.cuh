// The sum over few segments by the block that finishes last, instead of by a launch of its own
// (combine_kernel, attention.cu): the same operations in the same order, so that both give the same
// bits.
#pragma once

#include "kernels/cuda/attention_work.cuh"
#include "kernels/cuda/last_block.cuh"

namespace slip {

// What segments [begin, count) have of one query, all of it on its way at once. A lane has values
// lane + 32 e.
template <int kDim>
struct SegmentSums {
  static constexpr int kShares = kCombineThreads / (kDim / 4);  // of combine_kernel: one each
  static constexpr int kValues = kDim / kWarp;
  float values[kShares][kValues];

  __device__ __forceinline__ SegmentSums(const float* sums, int begin, int count) {
#pragma unroll
    for (int i = 0; i < kShares; ++i)
#pragma unroll
      for (int e = 0; e < kValues; ++e)
        values[i][e] =
            i >= begin && i < count ? __ldcg(sums + i * kDim + lane_id() + kWarp * e) : 0.0f;
  }

  // Their sum, `weight` of which lane i has of segment i.
  __device__ __forceinline__ void add_up(float weight, float (&totals)[kValues]) const {
#pragma unroll
    for (int e = 0; e < kValues; ++e) totals[e] = 0;
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      const float share = __shfl_sync(~0u, weight, i);
#pragma unroll
      for (int e = 0; e < kValues; ++e) totals[e] += fmaf(share, values[i][e], 0.0f);
    }
  }
};

template <int kDim, bool kCoded>
__device__ __forceinline__ void combine_segments(const TileParams& p, const TileWork& work) {
  if (work.query_count <= 0 || work.span.rows > kSplitRows) return;  // another launch's
  const int lane = lane_id();
#pragma unroll 1
  for (int query = warp_id(); query < work.query_count; query += kTileWarps) {
    const int index = int(blockIdx.x) * p.block_queries + query, row = index / p.group;
    const int head = work.kv_head * p.group + index % p.group;
    const int count = int(Segments::count(work.span.start + row + 1));
    const int64_t seen = p.window > 0 ? max(work.span.start + 1 - p.window, int64_t(0)) : 0;
    const int begin = int(Segments::of(seen));
    const int64_t at = (int64_t(work.partial_row + row) * p.q_heads + head) * p.segments;
    const bool counts = lane >= begin && lane < count;
    const float2 stats =
        counts ? __ldcg(p.partials.stats + at + lane) : make_float2(-INFINITY, 0.0f);
    const SegmentSums<kDim> sums(p.partials.sums + at * kDim, begin, count);
    const float largest = warp_max(stats.x);
    const float weight = counts ? exp2f(stats.x - largest) : 0.0f;
    const float denominator = warp_sum(fmaf(weight, stats.y, 0.0f));
    const float factor = __fmul_rn(reciprocal(denominator), p.value_factor);

    float totals[kDim / kWarp];
    sums.add_up(weight, totals);
#pragma unroll
    for (int e = 0; e < kDim / kWarp; ++e) totals[e] = __fmul_rn(totals[e], factor);
    if constexpr (kCoded) unrotate_in_registers(totals, p.value_signs);
    float* out = p.out + ((int64_t(work.span.first_row) + row) * p.q_heads + head) * kDim;
#pragma unroll
    for (int e = 0; e < kDim / kWarp; ++e) out[lane + kWarp * e] = totals[e];
  }
}

}  // namespace slip
