// Attention over one page with a running softmax. Included once per instruction set, after
// loops_math.h.
#pragma once

#include "kernels/cpu/simd/loops.h"
#include "quant/number_formats.h"

namespace slip {
namespace {

// Rows of stored keys or values, `stride` values apart.
template <class Stored>
struct KvRows {
  const typename Stored::Value* data;
  int64_t stride;
  const typename Stored::Value* at(int64_t position, int64_t dim) const {
    return data + position * stride + dim;
  }
  F32x16 vector(int64_t position, int64_t dim) const { return Stored::vector(at(position, dim)); }
  float one(int64_t position, int64_t dim) const { return Stored::one(*at(position, dim)); }
  void prefetch(int64_t position, int64_t dim) const { __builtin_prefetch(at(position, dim)); }
};
struct KvF32 {
  using Value = float;
  static F32x16 vector(const float* p) { return load(p); }
  static float one(float x) { return x; }
};
struct KvBf16 {
  using Value = uint16_t;
  static F32x16 vector(const uint16_t* p) { return load_bf16(p); }
  static float one(uint16_t x) { return bf16_to_float(x); }
};
struct KvFp8 {
  using Value = uint8_t;
  static F32x16 vector(const uint8_t* p) { return mul(load_fp8_bits(p), set1(0x1p112f)); }
  static float one(uint8_t x) {  // as vector() reads it
    const uint8_t bytes[kLanes] = {x};
    float lanes[kLanes];
    store(lanes, vector(bytes));
    return lanes[0];
  }
};

// Positions whose keys and values are asked for ahead of use: a row is 1 KB, too short for the
// hardware to see a stream across the rows of a page.
constexpr int64_t kAhead = 8;

// Dimensions that fill pairs of vectors; the few behind them go one by one.
inline int64_t vector_dims(const AttentionPage& page) {
  return page.head_dim / (2 * kLanes) * (2 * kLanes);
}

// Scores of Q queries against P positions: Q * P chains share the loads of both sides.
template <int Q, int P, class Source>
inline void score_block(const AttentionPage& page, const Source& keys, int64_t query,
                        int64_t position, float* scores) {
  const int64_t dims = vector_dims(page);
  F32x16 total[Q][P];
  for (int a = 0; a < Q; ++a)
    for (int b = 0; b < P; ++b) total[a][b] = zero();
  const bool first_time = query == 0;  // later queries find the keys in the first-level cache
  for (int64_t d = 0; d < dims; d += kLanes) {
    F32x16 k[P];
    for (int b = 0; b < P; ++b) {
      k[b] = keys.vector(position + b, d);
      if (first_time) keys.prefetch(position + b + kAhead, d);
    }
    for (int a = 0; a < Q; ++a) {
      const F32x16 q = load(page.q[query + a] + d);
      for (int b = 0; b < P; ++b) total[a][b] = fma(q, k[b], total[a][b]);
    }
  }
  float found[Q][P];
#pragma GCC unroll 8  // where not all indices were constants, g++ 12 would keep `total` in memory
  for (int a = 0; a < Q; ++a)
#pragma GCC unroll 3
    for (int b = 0; b < P; ++b) found[a][b] = sum(total[a][b]);
  for (int a = 0; a < Q; ++a)
    for (int b = 0; b < P; ++b) {
      float score = found[a][b];
      for (int64_t d = dims; d < page.head_dim; ++d)
        score += page.q[query + a][d] * keys.one(position + b, d);
      scores[a * kMaxPageSlice + position + b] = score;
    }
}

// Turns the scores of a slice into weights, of which those from `hidden` to `visible` are seen, and
// moves on the running maximum and denominator; returns the factor for what was summed before this
// slice.
inline float soften(float* scores, int64_t hidden, int64_t visible, float& maximum,
                    float& denominator) {
  for (int64_t i = 0; i < hidden; ++i) scores[i] = -INFINITY;
  for (int64_t i = visible; i < kMaxPageSlice; ++i) scores[i] = -INFINITY;
  F32x16 peak = load(scores);
  for (int64_t i = kLanes; i < kMaxPageSlice; i += kLanes) peak = max(peak, load(scores + i));
  const float before = maximum;
  const float slice_maximum = largest(peak);
  if (slice_maximum > maximum) maximum = slice_maximum;
  F32x16 total = zero();
  for (int64_t i = 0; i < kMaxPageSlice; i += kLanes) {
    F32x16 weight = zero();
    if (i < visible) weight = exp(sub(load(scores + i), set1(maximum)));
    store(scores + i, weight);
  }
  // exp() clamps at e^-87, so hidden positions are zeroed explicitly.
  for (int64_t i = 0; i < hidden; ++i) scores[i] = 0;
  for (int64_t i = visible; i < kMaxPageSlice; ++i) scores[i] = 0;
  for (int64_t i = 0; i < kMaxPageSlice; i += kLanes) total = add(total, load(scores + i));
  const float rescale = before == maximum ? 1.0f : std::exp(before - maximum);
  denominator = denominator * rescale + sum(total);
  return rescale;
}

// out = out * rescale + weights * values, for Q queries. A few positions at a time: their values
// (8 KB) are read once, in order, and stay in the first-level cache for all dimensions.
template <int Q, class Source>
inline void weigh_values(const AttentionPage& page, const Source& values, int64_t query,
                         int64_t first, int64_t visible, const float* scores,
                         const float* rescale) {
  constexpr int64_t kPositions = 8;
  for (int64_t begin = first; begin < visible; begin += kPositions) {
    const int64_t end = begin + kPositions < visible ? begin + kPositions : visible;
    for (int64_t d = 0; d < vector_dims(page); d += 2 * kLanes) {
      F32x16 total[Q][2];
      for (int a = 0; a < Q; ++a) {
        for (int j = 0; j < 2; ++j) {
          total[a][j] = load(page.out[query + a] + d + j * kLanes);
          if (begin == first) total[a][j] = mul(total[a][j], set1(rescale[a]));
        }
      }
      for (int64_t p = begin; p < end; ++p) {
        const F32x16 v0 = values.vector(p, d);
        const F32x16 v1 = values.vector(p, d + kLanes);
        if (query == 0) {
          values.prefetch(p + kAhead, d);
          values.prefetch(p + kAhead, d + kLanes);
        }
        for (int a = 0; a < Q; ++a) {
          const F32x16 weight = set1(scores[a * kMaxPageSlice + p]);
          total[a][0] = fma(weight, v0, total[a][0]);
          total[a][1] = fma(weight, v1, total[a][1]);
        }
      }
      for (int a = 0; a < Q; ++a)
        for (int j = 0; j < 2; ++j) store(page.out[query + a] + d + j * kLanes, total[a][j]);
    }
  }
  for (int a = 0; a < Q; ++a) {
    for (int64_t d = vector_dims(page); d < page.head_dim; ++d) {
      float total = page.out[query + a][d] * rescale[a];
      for (int64_t p = first; p < visible; ++p)
        total += scores[a * kMaxPageSlice + p] * values.one(p, d);
      page.out[query + a][d] = total;
    }
  }
}

template <int Q, class Source>
inline void attend_queries(const AttentionPage& page, const Source& keys, const Source& values,
                           int64_t query) {
  alignas(64) float scores[Q * kMaxPageSlice];
  int64_t visible = 0, first = kMaxPageSlice;
  for (int a = 0; a < Q; ++a) {
    const int64_t hidden = page.hidden ? page.hidden[query + a] : 0;
    visible = page.positions[query + a] > visible ? page.positions[query + a] : visible;
    first = hidden < first ? hidden : first;
  }
  int64_t position = first;
  for (; position + kScoreKeys <= visible; position += kScoreKeys)
    score_block<Q, kScoreKeys>(page, keys, query, position, scores);
  for (; position < visible; ++position) score_block<Q, 1>(page, keys, query, position, scores);
  float rescale[Q];
  for (int a = 0; a < Q; ++a)
    rescale[a] =
        soften(scores + a * kMaxPageSlice, page.hidden ? page.hidden[query + a] : 0,
               page.positions[query + a], page.maximum[query + a], page.denominator[query + a]);
  weigh_values<Q>(page, values, query, first, visible, scores, rescale);
}

template <class Stored>
inline void attend_page(const AttentionPage& page) {
  using Value = typename Stored::Value;
  const KvRows<Stored> keys{static_cast<const Value*>(page.keys), page.stride};
  const KvRows<Stored> values{static_cast<const Value*>(page.values), page.stride};
  int64_t query = 0;
  for (; query + kQueries <= page.queries; query += kQueries)
    attend_queries<kQueries>(page, keys, values, query);
  for (; query + 2 <= page.queries; query += 2) attend_queries<2>(page, keys, values, query);
  for (; query < page.queries; ++query) attend_queries<1>(page, keys, values, query);
}

void attention_page(const AttentionPage& page) {
  switch (page.stored) {
    case StoredKv::f32: return attend_page<KvF32>(page);
    case StoredKv::bf16: return attend_page<KvBf16>(page);
    case StoredKv::fp8: return attend_page<KvFp8>(page);
  }
}

}  // namespace
}  // namespace slip
