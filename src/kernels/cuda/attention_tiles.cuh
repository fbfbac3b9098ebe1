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

#include "kernels/cuda/attention_combine.cuh"
#include "kernels/cuda/attention_work.cuh"

namespace slip {

template <class Cache, int kTiles>
class TileBlock {
 public:
  static constexpr int kDim = Cache::kDim;
  static constexpr int kQueries = kTiles * kTileQueries;
  using Shared = TileShared<kDim, kTiles>;
  static constexpr bool kWide = kDim > kTileDim;
  // Both keys and values of the next chunk are on their way, unless they take too many registers.
  static constexpr bool kValuesAhead =
      kWide ? kTiles == 1 && is_light<Cache>() : kTiles == 1 || is_light<Cache>();
  // Whether a last page that is not whole is read like the others. It costs a comparison per load
  // and saves code of its own, for which a short step waits.
  static constexpr bool kAllPages = kTiles == 1 && !Cache::kCoded;
  using Values = typename Cache::template Values<!kAllPages>;
  // Heads so wide that no whole chunk fits into registers: piece by piece, when it is needed.
  static constexpr bool kByPieces = kWide && (kTiles > 1 || !Cache::kCoded);

  __device__ TileBlock(const TileParams& params, Shared& shared) : p_(params), shared_(shared) {}

  // All positions of the work.
  __device__ __forceinline__ void run() {
    const TileWork& work = shared_.work;
    if constexpr (!kByPieces) {
      run_ahead();
    } else if constexpr (Cache::kCoded) {
      prepare_queries();
#pragma unroll 1
      for (int64_t chunk = work.begin; chunk < work.pages_end; chunk += kChunk) run_codes(chunk);
    } else {
      prepare_queries();
#pragma unroll 1
      for (int64_t chunk = work.begin; chunk < work.end; chunk += kChunk)
        run_rows<typename Cache::Partial, 8, 4>(key_page(chunk), value_page(chunk), chunk);
    }
    if constexpr (Cache::kCoded) {
#pragma unroll 1
      for (int64_t chunk = first_uncoded(); chunk < work.end; chunk += kChunk) run_uncoded(chunk);
    }
  }

  // With the next chunk on its way. Keys and values come in as many parts; a part is asked for when
  // another has been read, whose registers it can have.
  __device__ __forceinline__ void run_ahead() {
    const TileWork& work = shared_.work;
    typename Cache::Keys keys = key_source();
    Values values = value_source();
    constexpr int kParts = Values::kParts;
    const int64_t end = kAllPages ? work.end : work.pages_end;
    if (work.begin < end) {
#pragma unroll
      for (int part = 0; part < kParts; ++part) keys.load(key_page(work.begin), part);
#pragma unroll
      for (int part = 0; part < kParts && kValuesAhead; ++part)
        values.load(value_page(work.begin), part);
    }
    if constexpr (Cache::kCoded && kTiles == 1) bring_uncoded();
    prepare_queries();
#pragma unroll 1
    for (int64_t chunk = work.begin; chunk < end; chunk += kChunk) {
      const int64_t next = chunk + kChunk;
      const auto load_next_keys = [&](int part) {
        if (next < end) keys.load(key_page(next), part);
      };
      const auto load_next_values = [&](int part) {
        if (next < end) values.load(value_page(next), part);
      };
      const auto load_behind_keys = [&](int part) {
        if constexpr (kValuesAhead)
          load_next_keys(part);
        else
          values.load(value_page(chunk), part);
      };
      Sums scores[kTiles][2];
      const auto key_scales = keys.scales;
      score(keys, scores, [&](int part) {
        if (part > 0) load_behind_keys(part - 1);
      });
      load_behind_keys(kParts - 1);
      weigh(key_scales, values.scales, chunk, false, scores);
      mix(values, [&](int step) {
        if (step != 2) return;
        if constexpr (!kValuesAhead)
          load_next_keys(0);
        else if constexpr (kParts > 1)
          load_next_values(0);
      });
      if constexpr (kValuesAhead)
        load_next_values(kParts - 1);
      else if constexpr (kParts > 1)
        load_next_keys(kParts - 1);
    }
    if constexpr (!Cache::kCoded)
      if (!kAllPages && work.pages_end < work.end)
        run_rows<typename Cache::Partial, 4, 4>(key_page(work.pages_end),
                                                value_page(work.pages_end), work.pages_end);
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
        if (kTiles == kWholeTiles && p_.segments == 0) {
          const int64_t at = (int64_t(work.span.first_row) + row) * p_.q_heads + head;
          const float factor = __fmul_rn(reciprocal(denominator), p_.value_factor);
          store(t, half, p_.out + at * kDim, [&](float sum) { return __fmul_rn(sum, factor); });
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

  __device__ __forceinline__ auto key_source() const {
    if constexpr (Cache::kCoded)
      return typename Cache::Keys(p_.key_table);
    else
      return typename Cache::Keys{};
  }
  __device__ __forceinline__ auto value_source() const {
    if constexpr (Cache::kCoded)
      return Values(p_.value_table);
    else
      return Values{};
  }

  // One side of the page of the cache that holds a chunk.
  template <class Source>
  __device__ __forceinline__ typename Cache::Page page(const uint8_t* side, const uint16_t* scales,
                                                       int64_t chunk) const {
    const int64_t number = shared_.work.span.page(chunk / kChunk, p_.ring_pages);
    const int64_t vector = (number * p_.kv_heads + shared_.work.kv_head) * kChunk;
    if constexpr (Cache::kCoded) {
      return {side + vector * (Source::kLaneWords * 4 * kTileThreads / kChunk), scales + vector};
    } else {
      using Value = std::remove_const_t<std::remove_pointer_t<decltype(Cache::Page::rows)>>;
      return {reinterpret_cast<const Value*>(side) + vector * kDim, kDim,
              int(min(int64_t(kChunk), shared_.work.rows_end - chunk))};
    }
  }
  __device__ __forceinline__ auto key_page(int64_t chunk) const {
    return page<typename Cache::Keys>(p_.keys, p_.key_scales, chunk);
  }
  __device__ __forceinline__ auto value_page(int64_t chunk) const {
    return page<Values>(p_.values, p_.value_scales, chunk);
  }

  // The page that the tile's first row reads uncoded, if it is of this block.
  __device__ __forceinline__ int64_t first_uncoded() const {
    const TileWork& work = shared_.work;
    const int64_t position = work.rows_begin + lead<Cache>(p_);
    return max(work.begin, position - position % kChunk);
  }

  // Where a chunk of the tail begins, on either side.
  __device__ __forceinline__ int64_t tail_begin(int64_t chunk) const {
    const DeviceKvTail tail(shared_.work.span, kChunk);
    const int64_t slot = int64_t(shared_.work.span.state_slot) * p_.kv_heads + shared_.work.kv_head;
    const int64_t place = lead<Cache>(p_) > 0 ? tail.place(chunk) : tail.beginning_place(chunk);
    return (slot * 2 * kChunk + place) * kDim;
  }

  // Asks for the beginning of the tail, which is read last and piece by piece.
  __device__ __forceinline__ void bring_uncoded() const {
    constexpr int kLine = 128 / sizeof(uint16_t);
    const int64_t chunk = first_uncoded(), at = tail_begin(chunk);
    const int values = int(min(int64_t(kChunk), shared_.work.end - chunk)) * kDim;
#pragma unroll 1
    for (int i = int(threadIdx.x) * kLine; i < values; i += kTileThreads * kLine) {
      bring_line(p_.key_tail + at + i);
      bring_line(p_.value_tail + at + i);
    }
  }

  // The page that rows of this tile lie in, for those rows. Spans of few rows find all of it in the
  // tail, and so do rows that ask about positions stored before. Others find the page that they
  // start in there, and further ones among the rows of the step.
  __device__ __forceinline__ void run_uncoded(int64_t chunk) {
    const int valid = int(min(int64_t(kChunk), shared_.work.rows_end - chunk));
    if constexpr (kTiles == kWholeTiles) {
      if (p_.segments == 0 && chunk >= shared_.work.span.start && lead<Cache>(p_) == 0) {
        const int64_t row = shared_.work.span.first_row + chunk - shared_.work.span.start;
        const int64_t at = (row * p_.kv_heads + shared_.work.kv_head) * kDim;
        const int64_t stride = int64_t(p_.kv_heads) * kDim;
        using Rows = std::conditional_t<kWide, PackedF32Rows, F32Rows>;
        run_rows<Rows, 8, 4>({p_.k + at, stride, valid}, {p_.v + at, stride, valid}, chunk);
        return;
      }
    }
    const int64_t at = tail_begin(chunk);
    run_rows<Bf16Rows, kTiles == 1 ? 2 : 4, kTiles == 1 ? 2 : 4>(
        {p_.key_tail + at, kDim, valid}, {p_.value_tail + at, kDim, valid}, chunk);
  }

  // A page of codes, a part at a time. The first part of values is asked for with their scales,
  // unless it takes too many registers.
  __device__ __forceinline__ void run_codes(int64_t chunk) {
    Sums scores[kTiles][2];
    typename Cache::PartOfKeys keys(p_.key_table);
    typename Cache::PartOfValues values(p_.value_table);
    constexpr bool kEarly = values.kWords <= 16;
    score(keys, scores, [&](int part) { keys.load(key_page(chunk), part); });
    if constexpr (kEarly)
      values.load(value_page(chunk), 0);
    else
      values.scales.load(value_page(chunk).scales);
    weigh(keys.scales, values.scales, chunk, false, scores);
    mix(values, [&](int step) {
      if (step % values.kSteps == 0 && !(kEarly && step == 0))
        values.load(value_page(chunk), step / values.kSteps);
    });
  }

  template <class Rows, int kKeyParts, int kValueParts>
  __device__ __forceinline__ void run_rows(const RowPage<Rows>& key_rows,
                                           const RowPage<Rows>& value_rows, int64_t chunk) {
    Sums scores[kTiles][2];
    constexpr bool kInLoop = kWide && Cache::kCoded;
    RowKeys<Rows, kDim, kKeyParts, false, kInLoop> keys;
    RowValues<Rows, kDim, kValueParts, false, kInLoop> values;
    score(keys, scores, [&](int part) { keys.load(key_rows, part); });
    weigh(keys.scales, values.scales, chunk, true, scores);
    mix(values, [&](int step) {
      if (step % values.kSteps == 0) values.load(value_rows, step / values.kSteps);
    });
  }

  __device__ __forceinline__ const float* query_at(int query) const {
    const int row = (first_query() + query) / p_.group;
    const int64_t head = shared_.work.kv_head * p_.group + (first_query() + query) % p_.group;
    return p_.q + ((shared_.work.span.first_row + row) * p_.q_heads + head) * kDim;
  }

  // Asks for all queries of the warp at once, a line of cache per lane: one after the other each
  // would be waited for.
  __device__ __forceinline__ void bring_queries() const {
    constexpr int kLine = 128 / sizeof(float), kLines = kDim / kLine;
#pragma unroll 1
    for (int line = lane_id(); line < kQueries / kTileWarps * kLines; line += kWarp) {
      const int query = warp_id() + line / kLines * kTileWarps;
      if (query < shared_.work.query_count) bring_line(query_at(query) + line % kLines * kLine);
    }
  }

  // Loads queries, rotates them if keys are, and rounds them.
  __device__ __forceinline__ void prepare_queries() {
    constexpr int kPerLane = kDim / kWarp;
    bring_queries();
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

template <class Cache, int kTiles>
__global__ void __launch_bounds__(kTileThreads, TileBlock<Cache, kTiles>::kWide    ? 1
                                                : kTiles == 1 && is_light<Cache>() ? 3
                                                                                   : 2)
    attend_tiles(const __grid_constant__ TileParams p) {
  __shared__ TileShared<Cache::kDim, kTiles> shared;
  let_next_begin();
  // Spans come from the host, before the step.
  if (threadIdx.x == 0) shared.work.find(p, Cache::kCoded, lead<Cache>(p));
  __syncthreads();
  wait_for_inputs();
  if (shared.work.begin < shared.work.end) {
    TileBlock<Cache, kTiles> block(p, shared);
    block.run();
    block.finish();
  }
  if (p.counters && finishes_last(p.counters[blockIdx.z * gridDim.x + blockIdx.x], gridDim.y))
    combine_segments<Cache::kDim, Cache::kCoded>(p, shared.work);
}

}  // namespace slip
