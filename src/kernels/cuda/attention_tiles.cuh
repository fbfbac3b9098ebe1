// Attention on tensor cores: one block, some queries of a kv head, a range of positions.
//
// Queries of a span, row after row, are the rows of tiles of 16. Four warps walk over chunks of 64
// positions. For the scores each takes 16 positions, for the mix of values a quarter of the
// dimensions, both for all queries, so that every key and value is read, and unpacked, by one lane.
// In between they exchange maxima and softmax weights through shared memory.
//
// Queries are rounded to f16 in units of a power of two of their own. Weights of a chunk are
// rounded to f16 too, in units of 2^(maximum - 14). The scale of a coded value is part of its
// weight; so that nothing overflows, the maximum is raised by the exponent of the chunk's largest
// scale. Everything else is float. What a query gets depends on no other query of the tile.
#pragma once

#include "kernels/cuda/attention_sources.cuh"

namespace slip {

inline constexpr int kChunk = kTilePositions;
inline constexpr int kTileWarps = kTileThreads / kWarp;
inline constexpr float kWeightExponent = 14;

// Keys and values of a plain cache, or those of a coded one, and how the tail and the rows of the
// step are read.
template <class Rows, int kHeadDim>
struct PlainCache {
  static constexpr int kDim = kHeadDim;
  static constexpr bool kCoded = false;
  using Keys = RowKeys<Rows, kDim, 1>;
  using Values = RowValues<Rows, kDim, 1>;
  using Page = RowPage<Rows>;
};
template <int kKeyBits, int kValueBits>
struct CodedCache {
  static constexpr int kDim = kTileDim;
  static constexpr bool kCoded = true;
  using Keys = CodedKeys<kKeyBits>;
  using Values = CodedValues<kValueBits>;
  using Page = CodePage;
};

template <int kDim, int kTiles>
struct TileShared {
  static constexpr int kQueries = kTiles * kTileQueries;
  uint4 queries[kQueries][kDim / 8];    // f16
  uint4 weights[kQueries][kChunk / 8];  // f16
  float maxima[kTileWarps][kQueries];   // of a chunk; in the end, denominators
  float scales[kTileWarps];             // largest of the values of a chunk
  float factors[kQueries];              // of scores
  int rows[kQueries];                   // of the span; none: -1
};

// Units of 16 bytes of a row are permuted, so that neither reading operands (eight lanes: two rows,
// four units in line) nor writing weights (eight rows, one unit) meets a bank twice.
__device__ __forceinline__ int swizzled(int row, int unit) {
  return unit ^ ((row & 1) << 2 | (row >> 1 & 3));
}

__device__ __forceinline__ float exp2_fast(float x) {  // 2 ulp
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// turbo_rotate() of a vector of which a lane has values lane + 32 e.
template <int kPerLane>
__device__ __forceinline__ void rotate_in_registers(float (&x)[kPerLane], const SignBits& signs) {
#pragma unroll
  for (int e = 0; e < kPerLane; ++e)
    if (signs.words[e] >> lane_id() & 1) x[e] = -x[e];
#pragma unroll
  for (int stride = 1; stride < kWarp; stride *= 2) {
#pragma unroll
    for (int e = 0; e < kPerLane; ++e) {
      const float other = __shfl_xor_sync(~0u, x[e], stride);
      x[e] = lane_id() & stride ? other - x[e] : x[e] + other;
    }
  }
#pragma unroll
  for (int stride = 1; stride < kPerLane; stride *= 2) {
#pragma unroll
    for (int e = 0; e < kPerLane; ++e) {
      if (e & stride) continue;
      const float a = x[e], b = x[e + stride];
      x[e] = a + b;
      x[e + stride] = a - b;
    }
  }
  const float norm = 1.0f / sqrtf(float(kPerLane * kWarp));
#pragma unroll
  for (int e = 0; e < kPerLane; ++e) x[e] *= norm;
}

template <class Cache, int kTiles>
class TileBlock {
 public:
  static constexpr int kDim = Cache::kDim;
  static constexpr int kQueries = kTiles * kTileQueries;
  using Shared = TileShared<kDim, kTiles>;

  __device__ TileBlock(const TileParams& params, const DeviceSpan& span, int kv_head,
                       Shared& shared)
      : p_(params),
        span_(span),
        shared_(shared),
        kv_head_(kv_head),
        group_(params.q_heads / params.kv_heads),
        first_query_(int64_t(blockIdx.x) * kQueries),
        query_count_(int(min(int64_t(kQueries), int64_t(span.rows) * group_ - first_query_))) {}

  __device__ bool is_empty() const { return query_count_ <= 0; }

  // Positions of the first row and behind the last one.
  __device__ int64_t first_position() const { return span_.start + first_query_ / group_; }
  __device__ int64_t end_position() const {
    return span_.start + (first_query_ + query_count_ - 1) / group_ + 1;
  }

  // Positions [begin, end); both begin with a chunk or end with the last row.
  __device__ __forceinline__ void run(int64_t begin, int64_t end) {
    typename Cache::Keys keys = key_source();
    typename Cache::Values values = value_source();
    // Pages before that of the last row are read as codes, by rows that lie behind them.
    const int64_t pages_end = Cache::kCoded ? min(end, page_of(end_position() - 1)) : end;
    if (begin < pages_end) {
      const int64_t page = span_.pages[begin / kChunk];
      keys.load(key_page(page, begin), 0);
      values.load(value_page(page, begin), 0);
    }
    prepare_queries();
#pragma unroll 1
    for (int64_t chunk = begin; chunk < pages_end; chunk += kChunk) {
      const int64_t next = chunk + kChunk;
      const bool more = next < pages_end;
      const int64_t next_page = more ? span_.pages[next / kChunk] : 0;
      Sums scores[kTiles][2];
      score(keys, scores);
      const auto key_scales = keys.scales;
      if (more) keys.load(key_page(next_page, next), 0);
      weigh(key_scales, values.scales, chunk, false, scores);
      mix(values);
      if (more) values.load(value_page(next_page, next), 0);
    }
    if constexpr (Cache::kCoded) {
#pragma unroll 1
      for (int64_t chunk = max(begin, page_of(first_position())); chunk < end; chunk += kChunk)
        run_uncoded(chunk);
    }
  }

  // Leaves sums over a segment in scratch, or the result in `out`.
  __device__ __forceinline__ void finish(int64_t segment, int32_t first_partial_row) {
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
        if (query >= query_count_) continue;
        float denominator = 0;
        for (int w = 0; w < kTileWarps; ++w) denominator += shared_.maxima[w][query];
        const int row = shared_.rows[query];
        const int64_t head = kv_head_ * group_ + (first_query_ + query) % group_;
        if (p_.segments == 0) {
          const int64_t at = (int64_t(span_.first_row) + row) * p_.q_heads + head;
          store(t, half, [&](int dim, float sum) {
            p_.out[at * kDim + dim] = sum / denominator * p_.value_factor;
          });
        } else {
          const int64_t at =
              ((int64_t(first_partial_row) + row) * p_.q_heads + head) * p_.segments + segment;
          if (warp_id() == 0 && j == 0)
            p_.partials.stats[at] = make_float2(maximum_[t][half], denominator);
          store(t, half, [&](int dim, float sum) { p_.partials.sums[at * kDim + dim] = sum; });
        }
      }
  }

 private:
  static __device__ int64_t page_of(int64_t position) { return position - position % kChunk; }

  __device__ __forceinline__ auto key_source() const {
    if constexpr (Cache::kCoded)
      return typename Cache::Keys(p_.key_table);
    else
      return typename Cache::Keys{};
  }
  __device__ __forceinline__ auto value_source() const {
    if constexpr (Cache::kCoded)
      return typename Cache::Values(p_.value_table);
    else
      return typename Cache::Values{};
  }

  // One side of a page of the cache, which holds the chunk at `chunk`.
  template <class Source>
  __device__ __forceinline__ typename Cache::Page page(const uint8_t* side, const uint16_t* scales,
                                                       int64_t number, int64_t chunk) const {
    const int64_t vector = (number * p_.kv_heads + kv_head_) * kChunk;
    if constexpr (Cache::kCoded) {
      return {side + vector * (Source::kWords * 4 * kTileThreads / kChunk), scales + vector};
    } else {
      using Value = std::remove_const_t<std::remove_pointer_t<decltype(Cache::Page::rows)>>;
      return {reinterpret_cast<const Value*>(side) + vector * kDim, kDim,
              int(min(int64_t(kChunk), end_position() - chunk))};
    }
  }
  __device__ __forceinline__ auto key_page(int64_t number, int64_t chunk) const {
    return page<typename Cache::Keys>(p_.keys, p_.key_scales, number, chunk);
  }
  __device__ __forceinline__ auto value_page(int64_t number, int64_t chunk) const {
    return page<typename Cache::Values>(p_.values, p_.value_scales, number, chunk);
  }

  // The page that rows of this tile lie in, for those rows. Spans of few rows find all of it in the
  // tail. Others find the page that they start in there, and further ones among the rows of the
  // step.
  __device__ __forceinline__ void run_uncoded(int64_t chunk) {
    const int valid = int(min(int64_t(kChunk), end_position() - chunk));
    if (p_.segments == 0 && chunk >= span_.start) {
      const int64_t row = span_.first_row + chunk - span_.start;
      const int64_t at = (row * p_.kv_heads + kv_head_) * kDim,
                    stride = int64_t(p_.kv_heads) * kDim;
      run_rows<F32Rows, 4>({p_.k + at, stride, valid}, {p_.v + at, stride, valid}, chunk);
    } else {
      const DeviceKvTail tail(span_, kChunk);
      const int64_t place = tail.beginning_place(chunk);
      const int64_t slot = int64_t(span_.state_slot) * p_.kv_heads + kv_head_;
      const int64_t at = (slot * 2 * kChunk + place) * kDim;
      run_rows<Bf16Rows, 2>({p_.key_tail + at, kDim, valid}, {p_.value_tail + at, kDim, valid},
                            chunk);
    }
  }

  template <class Rows, int kParts>
  __device__ __forceinline__ void run_rows(const RowPage<Rows>& key_rows,
                                           const RowPage<Rows>& value_rows, int64_t chunk) {
    Sums scores[kTiles][2];
    RowValues<Rows, kDim, kParts> values;
    {
      RowKeys<Rows, kDim, kParts> keys;
      keys.load(key_rows, 0);
      score(keys, scores, &key_rows);
      if constexpr (kParts == 1) values.load(value_rows, 0);
      weigh(keys.scales, values.scales, chunk, true, scores);
    }
    mix(values, &value_rows);
  }

  // Loads queries, rotates them if keys are, and rounds them.
  __device__ __forceinline__ void prepare_queries() {
    constexpr int kPerLane = kDim / kWarp;
#pragma unroll 1
    for (int query = warp_id(); query < kQueries; query += kTileWarps) {
      float x[kPerLane];
      const bool exists = query < query_count_;
      const int64_t row = (first_query_ + query) / group_;
      const int64_t head = kv_head_ * group_ + (first_query_ + query) % group_;
      const float* from = p_.q + ((span_.first_row + row) * p_.q_heads + head) * kDim;
      float largest = 0;
#pragma unroll
      for (int e = 0; e < kPerLane; ++e) x[e] = exists ? from[lane_id() + kWarp * e] : 0.0f;
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
        shared_.rows[query] = exists ? int(row) : -1;
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

  // Products of queries with the keys of this warp's 16 positions. `page` is where further parts of
  // keys come from, if they are held in parts.
  template <class Keys, class Page = const void>
  __device__ __forceinline__ void score(Keys& keys, Sums (&scores)[kTiles][2],
                                        const Page* page = nullptr) {
    const int g = lane_id() / 4, j = lane_id() % 4;
#pragma unroll
    for (int part = 0; part < Keys::kParts; ++part) {
      if constexpr (Keys::kParts > 1)
        if (part > 0) keys.load(*page, part);
#pragma unroll
      for (int i = 0; i < Keys::kSteps; ++i) {
        uint32_t operands[2][4];
        keys.octet(0, i, operands[0]);
        keys.octet(1, i, operands[1]);
        const int unit = swizzled(g, 4 * (part * Keys::kSteps + i) + j);
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

  // Positions of the chunk that a row of the span sees, in this way of reading it.
  __device__ __forceinline__ int visible(int row, int64_t chunk, bool uncoded) const {
    if (row < 0) return 0;
    const int64_t position = span_.start + row;
    if (!Cache::kCoded || uncoded) {
      if (uncoded && page_of(position) != chunk) return 0;
      return int(max(int64_t(0), min(int64_t(kChunk), position + 1 - chunk)));
    }
    return page_of(position) > chunk ? kChunk : 0;
  }

  // Scores become softmax weights in shared memory; what was summed so far changes its unit.
  template <class KeyScales, class ValueScales>
  __device__ __forceinline__ void weigh(const KeyScales& key_scales,
                                        const ValueScales& value_scales, int64_t chunk,
                                        bool uncoded, Sums (&scores)[kTiles][2]) {
    const int g = lane_id() / 4, j = lane_id() % 4;
    // Rows are in order: if the first one sees all of the chunk, so do the others.
    const bool all_visible = visible(int(first_query_ / group_), chunk, uncoded) == kChunk;
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int query = t * kTileQueries + half * 8 + g;
        const float factor = shared_.factors[query];
        const int end = all_visible ? kChunk : visible(shared_.rows[query], chunk, uncoded);
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
            if (16 * warp_id() + 8 * n + 2 * j + c >= end) s = -INFINITY;
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

  // Adds this warp's dimensions of the values, by their weights.
  template <class Values, class Page = const void>
  __device__ __forceinline__ void mix(Values& values, const Page* page = nullptr) {
    const int g = lane_id() / 4, j = lane_id() % 4;
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {  // of steps of 16 positions
      uint4 low[kTiles], high[kTiles];
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        const int unit = swizzled(g, 4 * pair + j);
        low[t] = shared_.weights[t * kTileQueries + g][unit];
        high[t] = shared_.weights[t * kTileQueries + 8 + g][unit];
      }
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const int s = 2 * pair + odd;
        if constexpr (Values::kParts > 1) values.load(*page, s);
#pragma unroll
        for (int u = 0; u < kDim / 64; ++u) {
          uint32_t operands[4];
          values.octet(s % Values::kSteps, u, operands);
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

  // Calls put(dimension, sum) for what this lane has of a query.
  template <class Put>
  __device__ __forceinline__ void store(int t, int half, const Put& put) const {
    constexpr int kPiece = kDim / 32;
#pragma unroll
    for (int c = 0; c < 2; ++c)
#pragma unroll
      for (int tile = 0; tile < kPiece; ++tile)
        put(warp_id() * (kDim / 4) + kPiece * (2 * (lane_id() % 4) + c) + tile,
            mixed_[t][tile].v[2 * half + c]);
  }

  const TileParams& p_;
  const DeviceSpan& span_;
  Shared& shared_;
  const int kv_head_, group_;
  const int64_t first_query_;
  const int query_count_;

  Sums mixed_[kTiles][kDim / 32];
  float maximum_[kTiles][2], denominator_[kTiles][2];
};

template <class Cache, int kTiles>
__global__ void __launch_bounds__(kTileThreads, kTiles == 1 ? 3 : 2)
    attend_tiles(const __grid_constant__ TileParams p) {
  __shared__ TileShared<Cache::kDim, kTiles> shared;
  let_next_begin();
  wait_for_inputs();
  const int index = p.first_span + int(blockIdx.z) / p.kv_heads;
  const DeviceSpan span = p.spans[index];
  if ((span.rows <= kSplitRows) != (p.segments > 0)) return;  // another launch's
  TileBlock<Cache, kTiles> block(p, span, int(blockIdx.z) % p.kv_heads, shared);
  if (block.is_empty()) return;
  const int64_t segment = blockIdx.y;
  const int64_t begin = p.segments > 0 ? Segments::begin(segment) : 0;
  const int64_t end = p.segments > 0 ? min(Segments::begin(segment + 1), block.end_position())
                                     : block.end_position();
  if (begin >= end) return;
  block.run(begin, end);
  block.finish(segment, p.segments > 0 ? partial_row(p.spans, p.first_span, index) : 0);
}

}  // namespace slip
