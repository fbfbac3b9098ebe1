// The sum over few segments by the block that finishes last, instead of by a launch of its own
// (combine_kernel, attention.cu): the same operations in the same order, so that both give the same
// bits. For plain caches: turning back what coded values sum up to takes more threads.
#pragma once

#include "kernels/cuda/attention_work.cuh"

namespace slip {

// Whether this block is the last of those that share its queries. Their sums are then to be seen.
__device__ __forceinline__ bool finishes_last(uint32_t* counters) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  uint32_t& counter = counters[blockIdx.z * gridDim.x + blockIdx.x];
  if (threadIdx.x == 0) {
    last = atomicAdd(&counter, 1u) == gridDim.y - 1;
    if (last) counter = 0;  // for the next launch
  }
  __syncthreads();
  __threadfence();
  return last;
}

template <int kDim, int kTiles>
__device__ __forceinline__ void combine_segments(const TileParams& p, const TileWork& work) {
  constexpr int kQueries = kTiles * kTileQueries;
  constexpr int kQuads = kDim / 4, kPerLane = kQuads / kWarp;
  constexpr int kShares = kCombineThreads / kQuads;  // of combine_kernel: one per segment
  if (work.query_count <= 0 || work.span.rows > kSplitRows) return;  // another launch's
  const int lane = lane_id();
  for (int query = warp_id(); query < work.query_count; query += kTileWarps) {
    const int index = int(blockIdx.x) * kQueries + query, row = index / p.group;
    const int head = work.kv_head * p.group + index % p.group;
    const int count = int(Segments::count(work.span.start + row + 1));
    const int64_t seen = p.window > 0 ? max(work.span.start + 1 - p.window, int64_t(0)) : 0;
    const int begin = int(Segments::of(seen));
    const int64_t at = (int64_t(work.partial_row + row) * p.q_heads + head) * p.segments;
    const bool counts = lane >= begin && lane < count;
    const float2 stats =
        counts ? __ldcg(p.partials.stats + at + lane) : make_float2(-INFINITY, 0.0f);
    const float largest = warp_max(stats.x);
    const float weight = counts ? exp2f(stats.x - largest) : 0.0f;
    const float denominator = warp_sum(fmaf(weight, stats.y, 0.0f));
    const float factor = __fmul_rn(reciprocal(denominator), p.value_factor);

    const auto* sums = reinterpret_cast<const float4*>(p.partials.sums) + at * kQuads;
    float4 totals[kPerLane];
#pragma unroll
    for (int e = 0; e < kPerLane; ++e) totals[e] = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      if (i >= count) break;
      if (i < begin) continue;
      const float share = __shfl_sync(~0u, weight, i);
#pragma unroll
      for (int e = 0; e < kPerLane; ++e) {
        const float4 x = __ldcg(sums + i * kQuads + lane + kWarp * e);
        float4& total = totals[e];
        total = make_float4(total.x + fmaf(share, x.x, 0.0f), total.y + fmaf(share, x.y, 0.0f),
                            total.z + fmaf(share, x.z, 0.0f), total.w + fmaf(share, x.w, 0.0f));
      }
    }
    float4* out = reinterpret_cast<float4*>(
        p.out + ((int64_t(work.span.first_row) + row) * p.q_heads + head) * kDim);
#pragma unroll
    for (int e = 0; e < kPerLane; ++e) {
      const float4 total = totals[e];
      out[lane + kWarp * e] = make_float4(__fmul_rn(total.x, factor), __fmul_rn(total.y, factor),
                                          __fmul_rn(total.z, factor), __fmul_rn(total.w, factor));
    }
  }
}

}  // namespace slip
