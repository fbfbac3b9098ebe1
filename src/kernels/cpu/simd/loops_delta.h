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

// The state of a large model comes from memory, and a strip of it in pieces of 128 bytes that the
// hardware does not foresee: asking for the piece so many keys ahead makes a row a third faster,
// and one from the cache a tenth slower. Only as far as the second-level cache: the first has no
// room.
constexpr int64_t kKeysAhead = 64;

// Reads one key of the state where it lies, and applies the recorded rows to it.
template <int V, class Vector>
inline void read_state(const DeltaColumns& a, int64_t i, int64_t column, const Vector& vector,
                       F32x16* s) {
  float* state = a.state + i * a.state_stride + column;
  for (int j = 0; j < V; ++j) {
    __builtin_prefetch(state + kKeysAhead * a.state_stride + j * kLanes, 0, 2);
    s[j] = vector.load(state + j * kLanes);
  }
  const DeltaUpdates& u = a.replay;
  if (u.rows == 0) return;
  for (int64_t row = 0; row < u.rows; ++row) {
    const F32x16 k = set1(u.k[row * u.k_stride + i]), alpha = set1(u.alpha[row * u.alpha_stride]);
    const float* delta = u.delta + row * u.delta_stride + column;
    for (int j = 0; j < V; ++j)
      s[j] = delta_update(alpha, s[j], k, vector.load(delta + j * kLanes));
  }
  for (int j = 0; j < V; ++j) vector.store(state + j * kLanes, s[j]);
}

// S^T k. read_key(i, s) gets the columns of a key. Two chains (even and odd keys) hide the latency
// of the sums.
template <int V, class ReadKey>
inline void delta_recall(const float* k, int64_t key_dim, const ReadKey& read_key, F32x16* result) {
  F32x16 even[V], odd[V], s[V];
  for (int j = 0; j < V; ++j) even[j] = odd[j] = zero();
  int64_t i = 0;
  for (; i + 2 <= key_dim; i += 2) {
    read_key(i, s);
    for (int j = 0; j < V; ++j) even[j] = fma(s[j], set1(k[i]), even[j]);
    read_key(i + 1, s);
    for (int j = 0; j < V; ++j) odd[j] = fma(s[j], set1(k[i + 1]), odd[j]);
  }
  for (; i < key_dim; ++i) {
    read_key(i, s);
    for (int j = 0; j < V; ++j) even[j] = fma(s[j], set1(k[i]), even[j]);
  }
  for (int j = 0; j < V; ++j) result[j] = add(even[j], odd[j]);
}

// One row. Recorded rows are applied while the first one reads the state.
template <int V, class Vector>
inline void delta_row(const DeltaColumns& a, int64_t row, int64_t column, const Vector& vector,
                      StateStrip from, StateStrip to) {
  const float* k = a.k + row * a.key_dim;
  const float* q = a.q + row * a.key_dim;
  const F32x16 alpha = set1(a.alpha[row]);
  const auto load_key = [&](int64_t i, F32x16* s) {
    for (int j = 0; j < V; ++j) s[j] = vector.load(from.key(i) + j * kLanes);
  };
  const auto load_state = [&](int64_t i, F32x16* s) { read_state<V>(a, i, column, vector, s); };
  F32x16 recalled[V], delta[V];
  if (row == 0 && !a.from_work)
    delta_recall<V>(k, a.key_dim, load_state, recalled);
  else
    delta_recall<V>(k, a.key_dim, load_key, recalled);
  for (int j = 0; j < V; ++j) {
    const F32x16 predicted = mul(alpha, recalled[j]);
    const F32x16 v = vector.load(a.v + row * a.v_stride + column + j * kLanes);
    delta[j] = mul(set1(a.beta[row]), sub(v, predicted));
    if (a.delta) vector.store(a.delta + row * a.delta_stride + column + j * kLanes, delta[j]);
  }
  const auto update_key = [&](int64_t i, F32x16* s) {
    load_key(i, s);
    for (int j = 0; j < V; ++j) {
      s[j] = delta_update(alpha, s[j], set1(k[i]), delta[j]);
      if (to.values) vector.store(to.key(i) + j * kLanes, s[j]);
    }
  };
  F32x16 out[V];
  delta_recall<V>(q, a.key_dim, update_key, out);
  for (int j = 0; j < V; ++j)
    vector.store(a.out + row * a.out_stride + column + j * kLanes, out[j]);
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
  for (int64_t row = 0; row < a.rows; ++row)
    delta_row<V>(a, row, column, vector, row > 0 || a.from_work ? work : state,
                 row + 1 < a.rows ? work : last);
  if (a.rows == 0) {  // nobody has read the state, and it may have to be brought up to date
    F32x16 s[V];
    for (int64_t i = 0; i < a.key_dim; ++i) read_state<V>(a, i, column, vector, s);
  }
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
