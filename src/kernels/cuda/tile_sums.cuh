// Linear layers of few rows: the sums of tiles, as the warps of a block take them from slabs of any
// format but int4 in groups of 128 (int4_runs.cuh) and rounded inputs.
#pragma once

#include "kernels/cuda/rounded_rows.cuh"
#include "kernels/cuda/slab_stream.cuh"

namespace slip::gemv {

// Where a lane finds its part of a slab's inputs. Rows past the last are copies of it: their sums
// are not written.
template <int kRowTiles>
struct LaneRows {
  int halves[kRowTiles];  // bytes from the slab's start
  int pair_bytes;         // from one pair of steps to the next
  int2 sum_rows[kRowTiles];

  __device__ explicit LaneRows(int rows) {
    const int lane = int(threadIdx.x) % kWarp;
    pair_bytes = slab_offset(1, 0, 0, rows);
#pragma unroll
    for (int t = 0; t < kRowTiles; ++t) {
      const int row = t * kMmaRows;
      halves[t] = slab_offset(0, min(row + lane / 4, rows - 1), lane % 4, rows);
      sum_rows[t] =
          make_int2(min(row + lane % 4 * 2, rows - 1), min(row + lane % 4 * 2 + 1, rows - 1));
    }
  }
};

// totals += slab x inputs. The steps of a slab are several chains of sums: an instruction waits for
// the one before it in its chain. scales(group) are those of the lane's outputs.
template <class Format, int kStepsPerScale, int kRowTiles, class Scales>
__device__ __forceinline__ void add_slab(Sums (&totals)[kRowTiles], const std::byte* slab,
                                         const RoundedRows& from, int index,
                                         const LaneRows<kRowTiles>& lane_rows,
                                         const Scales& scales) {
  constexpr int kSteps = kStepsPerScale < 4 ? kStepsPerScale : 4;  // of a chain
  constexpr int kChains = kStepsPerSlab / kSteps;
  constexpr int kChainsPerScale = kStepsPerScale / kSteps;  // 1 or 2
  const std::byte* inputs = from.inputs + index * slab_input_bytes(from.rows);
  uint32_t words[Format::kWords];
  load_lane_words(slab, 0, words);
  Sums sums[kRowTiles][kChains];
#pragma unroll
  for (int pair = 0; pair < kSteps / 2; ++pair) {
    uint4 x[kRowTiles][kChains];
#pragma unroll
    for (int t = 0; t < kRowTiles; ++t)
#pragma unroll
      for (int chain = 0; chain < kChains; ++chain)
        x[t][chain] = *reinterpret_cast<const uint4*>(
            inputs + lane_rows.halves[t] + (chain * kSteps / 2 + pair) * lane_rows.pair_bytes);
#pragma unroll
    for (int odd = 0; odd < 2; ++odd)
#pragma unroll
      for (int chain = 0; chain < kChains; ++chain) {
        const WeightFragment w = Format::fragment(words, chain * kSteps + 2 * pair + odd);
#pragma unroll
        for (int t = 0; t < kRowTiles; ++t)
          mma(sums[t][chain], w, odd ? x[t][chain].z : x[t][chain].x,
              odd ? x[t][chain].w : x[t][chain].y);
      }
  }
  const float* units = from.unit(index);
#pragma unroll
  for (int chain = 0; chain < kChains; chain += kChainsPerScale) {
    const float2 scale = scales(chain / kChainsPerScale);
#pragma unroll
    for (int t = 0; t < kRowTiles; ++t) {
      const float even = units[lane_rows.sum_rows[t].x], odd = units[lane_rows.sum_rows[t].y];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float sum = sums[t][chain].v[i];
        if (kChainsPerScale == 2) sum = __fadd_rn(sum, sums[t][chain + 1].v[i]);
        sum = __fmul_rn(sum, i < 2 ? scale.x : scale.y);
        totals[t].v[i] = __fmaf_rn(sum, i % 2 == 0 ? even : odd, totals[t].v[i]);
      }
    }
  }
}

// The same of f16, in units that are left for the end: each half of a slab is a chain of sums.
template <int kRowTiles, class Stream>
__device__ __forceinline__ void add_f16_slab(Sums (&totals)[kRowTiles], Stream& stream,
                                             const RoundedRows& from, int index,
                                             const LaneRows<kRowTiles>& lane_rows) {
  const std::byte* inputs = from.inputs + index * slab_input_bytes(from.rows);
  constexpr int kWords = F16Slab::kWords / 2;
  Sums sums[kRowTiles][2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint32_t words[kWords];
    load_lane_words(stream.next(), 0, words);
#pragma unroll
    for (int pair = 0; pair < kStepsPerSlab / 4; ++pair)
#pragma unroll
      for (int t = 0; t < kRowTiles; ++t) {
        const uint4 x = *reinterpret_cast<const uint4*>(inputs + lane_rows.halves[t] +
                                                        (half * kStepsPerSlab / 4 + pair) *
                                                            lane_rows.pair_bytes);
        mma(sums[t][half], F16Slab::fragment(words, 2 * pair), x.x, x.y);
        mma(sums[t][half], F16Slab::fragment(words, 2 * pair + 1), x.z, x.w);
      }
  }
  const float* units = from.unit(index);
#pragma unroll
  for (int t = 0; t < kRowTiles; ++t) {
    const float even = units[lane_rows.sum_rows[t].x], odd = units[lane_rows.sum_rows[t].y];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float sum = __fadd_rn(sums[t][0].v[i], sums[t][1].v[i]);
      totals[t].v[i] = __fmaf_rn(sum, i % 2 == 0 ? even : odd, totals[t].v[i]);
    }
  }
}

// The next slab of the stream.
template <int kRowTiles, class Stream>
__device__ __forceinline__ void add_slab_of(const DeviceWeight& weight, Sums (&totals)[kRowTiles],
                                            Stream& stream, const RoundedRows& from, int index,
                                            const LaneRows<kRowTiles>& lane_rows) {
  if (weight.format == DeviceFormat::f16_slabs)
    return add_f16_slab(totals, stream, from, index, lane_rows);
  const std::byte* slab = stream.next();
  if (weight.format == DeviceFormat::int4_group) {
    const auto scales = [&](int group) { return lane_scales(slab + 1024 + group * 32); };
    if (weight.group == 64)
      add_slab<Int4Slab, 4>(totals, slab, from, index, lane_rows, scales);
    else
      add_slab<Int4Slab, 2>(totals, slab, from, index, lane_rows, scales);
  } else if (weight.format == DeviceFormat::int8_row) {  // its scale is the same for all slabs
    add_slab<Int8Slab, 8>(totals, slab, from, index, lane_rows,
                          [](int) { return make_float2(1, 1); });
  } else {
    const float scale = *reinterpret_cast<const float*>(slab + kSlotValues) * kFp8Factor;
    add_slab<Fp8Slab, 8>(totals, slab, from, index, lane_rows,
                         [&](int) { return make_float2(scale, scale); });
  }
}

// Sums of one tile, 8 * kRowTiles rows of it, from slabs of any format but int4 in groups of 128.
template <int kRowTiles>
struct TileOfAny {
  Sums totals[kRowTiles];

  template <class Stream>
  __device__ void add(const DeviceWeight& weight, Stream& stream, const RoundedRows& from,
                      int index, const LaneRows<kRowTiles>& lanes) {
    add_slab_of(weight, totals, stream, from, index, lanes);
  }
  // To row r of `partials`, from the lane's output on.
  __device__ void write(float* partials, int rows) const {
    const int lane = int(threadIdx.x) % kWarp;
#pragma unroll
    for (int t = 0; t < kRowTiles; ++t)
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        const int row = t * kMmaRows + lane % 4 * 2 + v % 2;
        if (row < rows) partials[row * kPartialStride + v / 2 * 8] = totals[t].v[v];
      }
  }
};

// The tiles of a block, some at a time: every warp leaves its sums in `partials`, then all call
// finish(first tile, partials), which begins with a barrier. Two sets of partial sums take turns:
// the next may be finished by some warps while others still read the last.
template <int kRowTiles, class Stream, class Finish>
__device__ __forceinline__ void walk_tiles(const FewRows& work, Stream& stream,
                                           const RoundedRows& rounded, float* partials,
                                           const Finish& finish) {
  const int lane = int(threadIdx.x) % kWarp;
  const LaneRows<kRowTiles> lanes(rounded.rows);
  const int tile_partials = kWarps * work.rows_per_block * kPartialStride;
  int job = 0, turn = 0;
  for (int first = int(blockIdx.x); first < work.slabs.units;
       first += work.tiles_at_once * work.teams, turn ^= 1) {
    float* set = partials + turn * kTeams * work.tiles_at_once * tile_partials;
    float* own = set + team() * tile_partials + lane / 4 +
                 warp_of_team() * work.rows_per_block * kPartialStride;
    int tile = first + team() * int(gridDim.x);
    for (int i = 0; i < work.tiles_at_once && tile < work.slabs.units; ++i) {
#pragma unroll 1
      while (tile >= work.slabs.list[job].end) ++job;
      TileOfAny<kRowTiles> sums;
      for (int slab = warp_of_team(); slab < stream.slabs(); slab += kWarps)
        sums.add(work.slabs.list[job].weight, stream, rounded, slab, lanes);
      sums.write(own, rounded.rows);
      own += kTeams * tile_partials;
      tile += work.teams;
    }
    finish(first, set);
  }
}

}  // namespace slip::gemv
