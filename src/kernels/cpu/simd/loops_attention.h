// Attention over one page with a running softmax. Included once per instruction set, after
// loops_math.h.
#pragma once

#include "kernels/cpu/simd/loops.h"
#include "quant/number_formats.h"

namespace slip {
namespace {

struct F32Source {
  const float* data;
  F32x16 at(int64_t index) const { return load(data + index); }
  float one(int64_t index) const { return data[index]; }
  void prefetch(int64_t index) const { __builtin_prefetch(data + index); }
};
struct Bf16Source {
  const uint16_t* data;
  F32x16 at(int64_t index) const { return load_bf16(data + index); }
  float one(int64_t index) const { return bf16_to_float(data[index]); }
  void prefetch(int64_t index) const { __builtin_prefetch(data + index); }
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
  F32x16 total[Q][P];
  for (int a = 0; a < Q; ++a)
    for (int b = 0; b < P; ++b) total[a][b] = zero();
  for (int64_t d = 0; d < vector_dims(page); d += kLanes) {
    F32x16 k[P];
    for (int b = 0; b < P; ++b) {
      k[b] = keys.at((position + b) * page.head_dim + d);
      keys.prefetch((position + b + kAhead) * page.head_dim + d);
    }
    for (int a = 0; a < Q; ++a) {
      const F32x16 q = load(page.q[query + a] + d);
      for (int b = 0; b < P; ++b) total[a][b] = fma(q, k[b], total[a][b]);
    }
  }
  for (int a = 0; a < Q; ++a)
    for (int b = 0; b < P; ++b) {
      float score = sum(total[a][b]);
      for (int64_t d = vector_dims(page); d < page.head_dim; ++d)
        score += page.q[query + a][d] * keys.one((position + b) * page.head_dim + d);
      scores[a * kMaxPageSlice + position + b] = score;
    }
}

// Turns scores into weights; returns the factor for what was summed before this page.
inline float soften(const AttentionPage& page, int64_t query, float* scores) {
  const int64_t visible = page.positions[query];
  for (int64_t i = visible; i < kMaxPageSlice; ++i) scores[i] = -INFINITY;
  F32x16 peak = load(scores);
  for (int64_t i = kLanes; i < kMaxPageSlice; i += kLanes) peak = max(peak, load(scores + i));
  const float before = page.maximum[query];
  const float page_maximum = largest(peak);
  const float maximum = before > page_maximum ? before : page_maximum;
  F32x16 total = zero();
  for (int64_t i = 0; i < kMaxPageSlice; i += kLanes) {
    F32x16 weight = zero();
    if (i < visible) weight = exp(sub(load(scores + i), set1(maximum)));
    store(scores + i, weight);
  }
  // exp() clamps at e^-87, so hidden positions are zeroed explicitly.
  for (int64_t i = visible; i < kMaxPageSlice; ++i) scores[i] = 0;
  for (int64_t i = 0; i < kMaxPageSlice; i += kLanes) total = add(total, load(scores + i));
  const float rescale = before == maximum ? 1.0f : std::exp(before - maximum);
  page.maximum[query] = maximum;
  page.denominator[query] = page.denominator[query] * rescale + sum(total);
  return rescale;
}

// out = out * rescale + weights * values, for Q queries. A few positions at a time: their values
// (8 KB) are read once, in order, and stay in the first-level cache for all dimensions.
template <int Q, class Source>
inline void weigh_values(const AttentionPage& page, const Source& values, int64_t query,
                         int64_t visible, const float* scores, const float* rescale) {
  constexpr int64_t kPositions = 8;
  for (int64_t begin = 0; begin < visible; begin += kPositions) {
    const int64_t end = begin + kPositions < visible ? begin + kPositions : visible;
    for (int64_t d = 0; d < vector_dims(page); d += 2 * kLanes) {
      F32x16 total[Q][2];
      for (int a = 0; a < Q; ++a) {
        for (int j = 0; j < 2; ++j) {
          total[a][j] = load(page.out[query + a] + d + j * kLanes);
          if (begin == 0) total[a][j] = mul(total[a][j], set1(rescale[a]));
        }
      }
      for (int64_t p = begin; p < end; ++p) {
        const F32x16 v0 = values.at(p * page.head_dim + d);
        const F32x16 v1 = values.at(p * page.head_dim + d + kLanes);
        values.prefetch((p + kAhead) * page.head_dim + d);
        values.prefetch((p + kAhead) * page.head_dim + d + kLanes);
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
      for (int64_t p = 0; p < visible; ++p)
        total += scores[a * kMaxPageSlice + p] * values.one(p * page.head_dim + d);
      page.out[query + a][d] = total;
    }
  }
}

template <int Q, class Source>
inline void attend_queries(const AttentionPage& page, const Source& keys, const Source& values,
                           int64_t query) {
  alignas(64) float scores[Q * kMaxPageSlice];
  int64_t visible = 0;
  for (int a = 0; a < Q; ++a)
    visible = page.positions[query + a] > visible ? page.positions[query + a] : visible;
  int64_t position = 0;
  for (; position + 3 <= visible; position += 3)
    score_block<Q, 3>(page, keys, query, position, scores);
  for (; position < visible; ++position) score_block<Q, 1>(page, keys, query, position, scores);
  float rescale[Q];
  for (int a = 0; a < Q; ++a) rescale[a] = soften(page, query + a, scores + a * kMaxPageSlice);
  weigh_values<Q>(page, values, query, visible, scores, rescale);
}

template <class Source>
inline void attend_page(const AttentionPage& page, const Source& keys, const Source& values) {
  int64_t query = 0;
  for (; query + 2 <= page.queries; query += 2) attend_queries<2>(page, keys, values, query);
  for (; query < page.queries; ++query) attend_queries<1>(page, keys, values, query);
}

void attention_page(const AttentionPage& page) {
  if (page.bf16) {
    attend_page(page, Bf16Source{static_cast<const uint16_t*>(page.keys)},
                Bf16Source{static_cast<const uint16_t*>(page.values)});
  } else {
    attend_page(page, F32Source{static_cast<const float*>(page.keys)},
                F32Source{static_cast<const float*>(page.values)});
  }
}

}  // namespace
}  // namespace slip
