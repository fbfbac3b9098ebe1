// The delta rule, token by token, for a strip of columns of one head's state. Included once per
// instruction set, after loops_math.h.
#pragma once

#include "kernels/cpu/simd/loops.h"

namespace slip {
namespace {

// How a vector of columns is read and written: whole, or what is left of a head.
struct WholeVector {
  F32x16 load(const float* p) const { return slip::load(p); }
  void store(float* p, F32x16 x) const { slip::store(p, x); }
};
struct PartOfVector {
  int64_t valid;
  F32x16 load(const float* p) const { return load_part(p, valid); }
  void store(float* p, F32x16 x) const { store_part(p, valid, x); }
};

// Where a strip of the state lies at the moment; null: nobody needs it.
struct StateStrip {
  float* values = nullptr;
  int64_t stride = 0;
  float* key(int64_t i) const { return values + i * stride; }
};

// alpha s + k d. Rows and their replay both go through here, so that they agree bit for bit.
inline F32x16 delta_update(F32x16 alpha, F32x16 s, F32x16 k, F32x16 delta) {
  return fma(k, delta, mul(alpha, s));
}

template <int V, class Vector>
inline void delta_replay(const DeltaColumns& a, int64_t column, const Vector& vector,
                         StateStrip state) {
  const DeltaUpdates& u = a.replay;
  for (int64_t i = 0; i < a.key_dim; ++i) {
    F32x16 s[V];
    for (int j = 0; j < V; ++j) s[j] = vector.load(state.key(i) + j * kLanes);
    for (int64_t row = 0; row < u.rows; ++row) {
      const F32x16 k = set1(u.k[row * u.k_stride + i]), alpha = set1(u.alpha[row * u.alpha_stride]);
      const float* delta = u.delta + row * u.delta_stride + column;
      for (int j = 0; j < V; ++j)
        s[j] = delta_update(alpha, s[j], k, vector.load(delta + j * kLanes));
    }
    for (int j = 0; j < V; ++j) vector.store(state.key(i) + j * kLanes, s[j]);
  }
}

// One row. Two chains (even and odd keys) hide the latency of the sums.
template <int V, class Vector>
inline void delta_row(const DeltaColumns& a, int64_t row, int64_t column, const Vector& vector,
                      StateStrip from, StateStrip to) {
  const float* k = a.k + row * a.key_dim;
  const float* q = a.q + row * a.key_dim;
  const F32x16 alpha = set1(a.alpha[row]);
  F32x16 even[V], odd[V], delta[V];
  for (int j = 0; j < V; ++j) even[j] = odd[j] = zero();
  int64_t i = 0;
  for (; i + 2 <= a.key_dim; i += 2) {
    const F32x16 k0 = set1(k[i]), k1 = set1(k[i + 1]);
    for (int j = 0; j < V; ++j) {
      even[j] = fma(vector.load(from.key(i) + j * kLanes), k0, even[j]);
      odd[j] = fma(vector.load(from.key(i + 1) + j * kLanes), k1, odd[j]);
    }
  }
  for (; i < a.key_dim; ++i)
    for (int j = 0; j < V; ++j)
      even[j] = fma(vector.load(from.key(i) + j * kLanes), set1(k[i]), even[j]);
  for (int j = 0; j < V; ++j) {
    const F32x16 predicted = mul(alpha, add(even[j], odd[j]));
    const F32x16 v = vector.load(a.v + row * a.v_stride + column + j * kLanes);
    delta[j] = mul(set1(a.beta[row]), sub(v, predicted));
    if (a.delta) vector.store(a.delta + row * a.delta_stride + column + j * kLanes, delta[j]);
    even[j] = odd[j] = zero();
  }
  const auto update = [&](int64_t key, F32x16* out) {
    const F32x16 kk = set1(k[key]), qq = set1(q[key]);
    for (int j = 0; j < V; ++j) {
      const F32x16 s = vector.load(from.key(key) + j * kLanes);
      const F32x16 next = delta_update(alpha, s, kk, delta[j]);
      if (to.values) vector.store(to.key(key) + j * kLanes, next);
      out[j] = fma(next, qq, out[j]);
    }
  };
  for (i = 0; i + 2 <= a.key_dim; i += 2) {
    update(i, even);
    update(i + 1, odd);
  }
  for (; i < a.key_dim; ++i) update(i, even);
  for (int j = 0; j < V; ++j)
    vector.store(a.out + row * a.out_stride + column + j * kLanes, add(even[j], odd[j]));
}

// V vectors of columns over all rows. The first row reads the state, the last one writes it;
// between them a copy (128 x 32 floats = 16 KB) stays in the first-level cache, which it could not
// where it lies: its rows are a power of two apart and compete for the same few places.
template <int V, class Vector>
inline void delta_strip(const DeltaColumns& a, int64_t column, const Vector& vector) {
  // Stores are done in order: one that waits for memory would hold up those to the copy.
  for (int64_t row = 0; row < a.rows && a.delta; ++row)
    for (int j = 0; j < V; ++j)
      __builtin_prefetch(a.delta + row * a.delta_stride + column + j * kLanes, 1);

  const StateStrip state{a.state + column, a.state_stride}, nowhere{};
  const StateStrip work{a.work + column * a.key_dim, V * kLanes};
  const StateStrip last = a.to_work ? work : a.delta ? nowhere : state;
  if (a.replay.rows > 0) delta_replay<V>(a, column, vector, state);
  for (int64_t row = 0; row < a.rows; ++row)
    delta_row<V>(a, row, column, vector, row > 0 || a.from_work ? work : state,
                 row + 1 < a.rows ? work : last);
}

void delta_columns(const DeltaColumns& a) {
  int64_t column = 0;
  for (; column + 2 * kLanes <= a.columns; column += 2 * kLanes)
    delta_strip<2>(a, column, WholeVector{});
  for (; column + kLanes <= a.columns; column += kLanes) delta_strip<1>(a, column, WholeVector{});
  if (column < a.columns) delta_strip<1>(a, column, PartOfVector{a.columns - column});
}

}  // namespace
}  // namespace slip
