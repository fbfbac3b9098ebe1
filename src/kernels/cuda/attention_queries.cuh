// The queries of a block on tensor cores, and what they have taken from keys and values so far.
//
// Queries are rounded to f16 in units of a power of two of their own. Weights of a chunk are
// rounded to f16 too, in units of 2^(maximum - 14). The scale of a coded value is part of its
// weight; so that nothing overflows, the maximum is raised by the exponent of the chunk's largest
// scale. Everything else is float. What a query gets depends on no other query of the tile.
#pragma once

#include "kernels/cuda/attention_work.cuh"

namespace slip {

template <class Cache, int kTiles>
class QueryTiles {
 public:
  static constexpr int kDim = Cache::kDim;
  static constexpr int kQueries = kTiles * kTileQueries;
  using Shared = TileShared<kDim, kTiles>;
  __device__ QueryTiles(const TileParams& params, Shared& shared) : p_(params), shared_(shared) {}

  // Asks for all queries of the warp at once, a line of cache per lane: one after the other each
  // would be waited for.
  __device__ __forceinline__ void bring() const {
    constexpr int kLine = 128 / sizeof(float), kLines = kDim / kLine;
#pragma unroll 1
    for (int line = lane_id(); line < kQueries / kTileWarps * kLines; line += kWarp) {
      const int query = warp_id() + line / kLines * kTileWarps;
      if (query < shared_.work.query_count) bring_line(query_at(query) + line % kLines * kLine);
    }
  }

  // Loads queries, rotates them if keys are, and rounds them.
  __device__ __forceinline__ void prepare() {
    constexpr int kPerLane = kDim / kWarp;
#pragma unroll 1
    for (int query = warp_id(); query < shared_.work.query_count; query += kTileWarps) {
      float x[kPerLane];
      const int row = (first_query() + query) / p_.group;
      const float* from = query_at(query);
      float largest = 0;
#pragma unroll
      for (int e = 0; e < kPerLane; ++e) x[e] = from[lane_id() + kWarp * e];
      if constexpr (Cache::kCoded) rotate_in_registers(x, p_.signs);
#pragma unroll
      for (int e = 0; e < kPerLane; ++e) largest = fmaxf(largest, fabsf(x[e]));
      const PowerScale unit = power_scale(warp_max(largest));
#pragma unroll
      for (int e = 0; e < kPerLane; ++e) {
        const int dim = lane_id() + kWarp * e;
        auto* to = reinterpret_cast<__half*>(&shared_.queries[query][swizzled(query, dim / 8)]);
        to[dim % 8] = __float2half_rn(x[e] * unit.inverse);
      }
      if (lane_id() == 0) {
        shared_.factors[query] = unit.scale * p_.score_factor;
        shared_.rows[query] = row;
      }
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        maximum_[t][half] = -INFINITY;
        denominator_[t][half] = 0;
      }
    __syncthreads();
  }

  // Products of queries with the keys of this warp's 16 positions. Calls before(part) ahead of each
  // part of the keys.
  template <class Keys, class Before>
  __device__ __forceinline__ void score(const Keys& keys, Sums (&scores)[kTiles][2],
                                        const Before& before) {
    const int g = lane_id() / 4;
    const OperandUnits units;
    constexpr int kUnroll = Keys::kInLoop ? 1 : Keys::kParts;
#pragma unroll kUnroll
    for (int part = 0; part < Keys::kParts; ++part) {
      before(part);
#pragma unroll
      for (int i = 0; i < Keys::kSteps; ++i) {
        uint32_t operands[2][4];
        keys.octet(part, 0, i, operands[0]);
        keys.octet(part, 1, i, operands[1]);
        const int unit = units.at(part * Keys::kSteps + i);
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
          const uint4 low = shared_.queries[t * kTileQueries + g][unit];
          const uint4 high = shared_.queries[t * kTileQueries + 8 + g][unit];
#pragma unroll
          for (int n = 0; n < 2; ++n) {
            mma(scores[t][n], {{low.x, high.x, low.y, high.y}}, operands[n][0], operands[n][1]);
            mma(scores[t][n], {{low.z, high.z, low.w, high.w}}, operands[n][2], operands[n][3]);
          }
        }
      }
    }
  }

  // Scores become softmax weights in shared memory; what was summed so far changes its unit.
  template <class KeyScales, class ValueScales>
  __device__ __forceinline__ void weigh(const KeyScales& key_scales,
                                        const ValueScales& value_scales, int64_t chunk,
                                        bool uncoded, Sums (&scores)[kTiles][2]) {
    const int g = lane_id() / 4, j = lane_id() % 4;
    constexpr int64_t kFar = int64_t{1} << 30;
    const int start = int(min(shared_.work.span.start - chunk, kFar));
    // Rows are in order: if the first one sees the end of the chunk, so do the others, and if the
    // last one sees its beginning.
    const bool all_visible = !uncoded && visible(start + shared_.rows[0], false) == kChunk &&
                             first_visible(start + shared_.rows[shared_.work.query_count - 1]) == 0;
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int query = t * kTileQueries + half * 8 + g;
        const float factor = shared_.factors[query];
        const int end = all_visible ? kChunk : visible(start + shared_.rows[query], uncoded);
        const int first = all_visible ? 0 : first_visible(start + shared_.rows[query]);
        float largest = -INFINITY;
#pragma unroll
        for (int n = 0; n < 2; ++n)
#pragma unroll
          for (int c = 0; c < 2; ++c) {
            float& s = scores[t][n].v[2 * half + c];
            if constexpr (KeyScales::kScaled)
              s = __fmul_rn(s, __fmul_rn(factor, key_scales.at(n, c)));
            else
              s = __fmul_rn(s, factor);
            const int position = 16 * warp_id() + 8 * n + 2 * j + c;
            if (position >= end || position < first) s = -INFINITY;
            largest = fmaxf(largest, s);
          }
        largest = quad_max(largest);
        if (j == 0) shared_.maxima[warp_id()][query] = largest;
      }
    if constexpr (ValueScales::kScaled) {
      const float largest = quad_max(fmaxf(fmaxf(value_scales.at(0, 0), value_scales.at(0, 1)),
                                           fmaxf(value_scales.at(1, 0), value_scales.at(1, 1))));
      if (lane_id() == 0) shared_.scales[warp_id()] = largest;
    }
    __syncthreads();
    float exponent = 0;  // of the largest scale
    if constexpr (ValueScales::kScaled) {
      float largest = 0;
#pragma unroll
      for (int w = 0; w < kTileWarps; ++w) largest = fmaxf(largest, shared_.scales[w]);
      constexpr int kLeast = -64;  // and below it, nothing
      exponent = float(max(int(__float_as_uint(largest) >> 23) - 127, kLeast));
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int query = t * kTileQueries + half * 8 + g;
        float largest = -INFINITY;
#pragma unroll
        for (int w = 0; w < kTileWarps; ++w) largest = fmaxf(largest, shared_.maxima[w][query]);
        const float maximum = fmaxf(maximum_[t][half], largest + exponent);
        const float unit = maximum == -INFINITY ? 0.0f : maximum;  // nothing seen yet
        const float keep = exp2_fast(maximum_[t][half] - unit);
        maximum_[t][half] = maximum;
        float sum = 0;
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          float weight[2];
#pragma unroll
          for (int c = 0; c < 2; ++c)
            weight[c] = exp2_fast(scores[t][n].v[2 * half + c] - (unit - kWeightExponent));
          __half2 rounded;
          if constexpr (ValueScales::kScaled) {
            rounded = __floats2half2_rn(__fmul_rn(weight[0], value_scales.at(n, 0)),
                                        __fmul_rn(weight[1], value_scales.at(n, 1)));
          } else {  // the sum of what is multiplied: a single position is then exact
            rounded = __floats2half2_rn(weight[0], weight[1]);
            weight[0] = __low2float(rounded);
            weight[1] = __high2float(rounded);
          }
          sum = __fadd_rn(sum, __fadd_rn(weight[0], weight[1]));
          auto* to = reinterpret_cast<uint32_t*>(
              &shared_.weights[query][swizzled(query, 2 * warp_id() + n)]);
          to[j] = half2_bits(rounded);
        }
        denominator_[t][half] = __fadd_rn(__fmul_rn(denominator_[t][half], keep), sum);
#pragma unroll
        for (int tile = 0; tile < kDim / 32; ++tile)
#pragma unroll
          for (int c = 0; c < 2; ++c) {
            float& value = mixed_[t][tile].v[2 * half + c];
            value = __fmul_rn(value, keep);
          }
      }
    __syncthreads();
  }

  // Adds this warp's dimensions of the values, by their weights. Calls before(step) ahead of each
  // of four steps of 16 positions.
  template <class Values, class Before>
  __device__ __forceinline__ void mix(const Values& values, const Before& before) {
    const int g = lane_id() / 4;
    const OperandUnits units;
    constexpr int kUnroll = Values::kInLoop ? 1 : 2;
#pragma unroll kUnroll
    for (int pair = 0; pair < 2; ++pair) {
      uint4 low[kTiles], high[kTiles];
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        low[t] = shared_.weights[t * kTileQueries + g][units.at(pair)];
        high[t] = shared_.weights[t * kTileQueries + 8 + g][units.at(pair)];
      }
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const int s = 2 * pair + odd;
        before(s);
#pragma unroll
        for (int u = 0; u < kDim / 64; ++u) {
          uint32_t operands[4];
          values.octet(s / Values::kSteps, s % Values::kSteps, u, operands);
#pragma unroll
          for (int t = 0; t < kTiles; ++t) {
            const WeightFragment weights =
                odd == 0 ? WeightFragment{{low[t].x, high[t].x, low[t].y, high[t].y}}
                         : WeightFragment{{low[t].z, high[t].z, low[t].w, high[t].w}};
            mma(mixed_[t][2 * u], weights, operands[0], operands[1]);
            mma(mixed_[t][2 * u + 1], weights, operands[2], operands[3]);
          }
        }
      }
    }
  }

  // Leaves sums over a segment in scratch, or the result in `out`.
  __device__ __forceinline__ void finish() {
    const TileWork& work = shared_.work;
    const int g = lane_id() / 4, j = lane_id() % 4;
    __syncthreads();  // maxima have been read
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float sum = quad_sum(denominator_[t][half]);
        if (j == 0) shared_.maxima[warp_id()][t * kTileQueries + half * 8 + g] = sum;
      }
    __syncthreads();
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int query = t * kTileQueries + half * 8 + g;
        if (query >= work.query_count) continue;
        float denominator = 0;
        for (int w = 0; w < kTileWarps; ++w) denominator += shared_.maxima[w][query];
        const int row = shared_.rows[query];
        const int64_t head = work.kv_head * p_.group + (first_query() + query) % p_.group;
        // Two tiles have no registers to ask whether they are alone.
        if (kTiles == 1 ? work.alone : p_.segments == 0) {
          const int64_t at = (int64_t(work.span.first_row) + row) * p_.q_heads + head;
          float* to = kTiles == 1 && Cache::kCoded ? shared_.result(query) : p_.out + at * kDim;
          const float factor = __fmul_rn(reciprocal(denominator), p_.value_factor);
          store(t, half, to, [&](float sum) { return __fmul_rn(sum, factor); });
        } else {
          const int64_t at =
              ((int64_t(work.partial_row) + row) * p_.q_heads + head) * p_.segments + blockIdx.y;
          if (warp_id() == 0 && j == 0)
            p_.partials.stats[at] = make_float2(maximum_[t][half], denominator);
          store(t, half, p_.partials.sums + at * kDim, [](float sum) { return sum; });
        }
      }
  }

 private:
  __device__ int first_query() const { return int(blockIdx.x) * p_.block_queries; }

  __device__ __forceinline__ const float* query_at(int query) const {
    const int row = (first_query() + query) / p_.group;
    const int64_t head = shared_.work.kv_head * p_.group + (first_query() + query) % p_.group;
    return p_.q + ((shared_.work.span.first_row + row) * p_.q_heads + head) * kDim;
  }

  // The first position of a chunk that a row's window holds; `offset` as below.
  __device__ __forceinline__ int first_visible(int offset) const {
    if (Cache::kCoded || p_.window == 0) return 0;
    return int(max(int64_t(offset) + 1 - p_.window, int64_t(0)));
  }

  // Positions of a chunk that a row sees in this way of reading it. `offset` is the row's position,
  // counted from the chunk's first.
  __device__ __forceinline__ int visible(int offset, bool uncoded) const {
    if (!Cache::kCoded) return min(max(offset + 1, 0), kChunk);
    const int uncoded_at = offset + lead<Cache>(p_);
    if (uncoded) return uncoded_at >= 0 && uncoded_at < kChunk ? offset + 1 : 0;
    return uncoded_at >= kChunk ? kChunk : 0;
  }

  // Puts made(sum) of what this lane has of a query where it belongs in the query's row.
  template <class Made>
  __device__ __forceinline__ void store(int t, int half, float* row, const Made& made) const {
    constexpr int kPiece = kDim / 32;
#pragma unroll
    for (int c = 0; c < 2; ++c)
#pragma unroll
      for (int tile = 0; tile < kPiece; tile += kQuad) {
        const auto sum = [&](int i) { return made(mixed_[t][tile + i].v[2 * half + c]); };
        float* to = row + warp_id() * (kDim / 4) + kPiece * (2 * (lane_id() % 4) + c) + tile;
        *reinterpret_cast<float4*>(to) = make_float4(sum(0), sum(1), sum(2), sum(3));
      }
  }

  const TileParams& p_;
  Shared& shared_;

  Sums mixed_[kTiles][kDim / 32];
  float maximum_[kTiles][2], denominator_[kTiles][2];
};

}  // namespace slip
