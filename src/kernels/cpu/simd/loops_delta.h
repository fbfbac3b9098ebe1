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

// Where a strip of the state lies.
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
// room. Never past what this thread will read: the piece would be fetched from under the thread
// that is about to write it.
constexpr int64_t kKeysAhead = 64;

// Recorded rows that are applied to a key at a time, as many as registers hold.
constexpr int kReplayRows = 4;

// Reads a key of the state where it lies, and applies R recorded rows to it.
template <int V, int R, class Vector>
class StateReader {
 public:
  StateReader(const DeltaColumns& a, int64_t first_row, int64_t column, const Vector& vector)
      : state_{a.state + column, a.state_stride},
        later_(state_),
        keys_(a.key_dim),
        vector_(vector) {
    const int64_t next_column = column + V * kLanes;
    if (next_column < a.columns) {
      later_.values = a.state + next_column;
    } else if (a.next_state) {
      later_.values = a.next_state;
    }
    const DeltaUpdates& u = a.replay;
    for (int r = 0; r < R; ++r) {
      const int64_t row = first_row + r;
      alpha_[r] = set1(u.alpha[row * u.alpha_stride]);
      k_[r] = u.k + row * u.k_stride;
      for (int j = 0; j < V; ++j)
        delta_[r][j] = vector.load(u.delta + row * u.delta_stride + column + j * kLanes);
    }
  }

  void operator()(int64_t i, F32x16* s) const {
    float* key = state_.key(i);
    const int64_t ahead = i + kKeysAhead;
    const float* asked = ahead < keys_ ? state_.key(ahead) : later_.key(ahead - keys_);
    for (int j = 0; j < V; ++j) {
      __builtin_prefetch(asked + j * kLanes, 0, 2);
      s[j] = vector_.load(key + j * kLanes);
    }
    for (int r = 0; r < R; ++r)
      for (int j = 0; j < V; ++j)
        s[j] = delta_update(alpha_[r], s[j], set1(k_[r][i]), delta_[r][j]);
    for (int j = 0; j < V && R > 0; ++j) vector_.store(key + j * kLanes, s[j]);
  }

 private:
  StateStrip state_;
  StateStrip later_;  // what is read behind it, or itself
  int64_t keys_;
  Vector vector_;
  F32x16 alpha_[R + 1], delta_[R + 1][V];  // one more than needed: there may be none
  const float* k_[R + 1];
};

// Calls run(reader) with one that applies the last recorded rows; the others are applied before.
template <int V, class Vector, class Run>
inline void replay_and_run(const DeltaColumns& a, int64_t column, const Vector& vector,
                           const Run& run) {
  int64_t row = 0;
  for (; a.replay.rows - row > kReplayRows; row += kReplayRows) {
    const StateReader<V, kReplayRows, Vector> update(a, row, column, vector);
    F32x16 s[V];
    for (int64_t i = 0; i < a.key_dim; ++i) update(i, s);
  }
  switch (a.replay.rows - row) {
    case 0: return run(StateReader<V, 0, Vector>(a, row, column, vector));
    case 1: return run(StateReader<V, 1, Vector>(a, row, column, vector));
    case 2: return run(StateReader<V, 2, Vector>(a, row, column, vector));
    case 3: return run(StateReader<V, 3, Vector>(a, row, column, vector));
    default: return run(StateReader<V, kReplayRows, Vector>(a, row, column, vector));
  }
}

// The change a row makes: state = alpha state + k delta.
template <int V>
struct DeltaChange {
  F32x16 alpha;
  const float* k;
  F32x16 delta[V];
};

// One pass over the state: the change of the row before is made, and what the new state holds for
// the row's key and query is summed up. read_key(i, s) gets the columns of a key, changed.
template <int V, class ReadKey>
inline void delta_recall(const float* k, const float* q, int64_t key_dim, const ReadKey& read_key,
                         F32x16* for_key, F32x16* for_query) {
  F32x16 s[V];
  for (int j = 0; j < V; ++j) for_key[j] = for_query[j] = zero();
  for (int64_t i = 0; i < key_dim; ++i) {
    read_key(i, s);
    const F32x16 key = set1(k[i]), query = set1(q[i]);
    for (int j = 0; j < V; ++j) for_key[j] = fma(s[j], key, for_key[j]);
    for (int j = 0; j < V; ++j) for_query[j] = fma(s[j], query, for_query[j]);
  }
}

// Reads a key of `from`, makes the change, and leaves it in `to`.
template <int V, class Vector>
inline void change_key(const DeltaChange<V>& change, int64_t i, const Vector& vector,
                       StateStrip from, StateStrip to, F32x16* s) {
  // There is a change once a row was read, and rows are not negative.
  const F32x16 k = set1(change.k[i]);  // NOLINT(clang-analyzer-core.NullDereference)
  for (int j = 0; j < V; ++j) {
    s[j] = delta_update(change.alpha, vector.load(from.key(i) + j * kLanes), k, change.delta[j]);
    vector.store(to.key(i) + j * kLanes, s[j]);
  }
}

// V vectors of columns over all rows. A row's output needs no pass of its own over the new state:
// (alpha S + k d)^T q = alpha S^T q + (k q) d. So a row is one pass that also makes the change of
// the row before; the last change goes to the state, or nowhere when rows are recorded. Between
// rows a copy (128 x 32 floats = 16 KB) stays in the first-level cache, which it could not where it
// lies: its rows are a power of two apart and compete for the same few places.
template <int V, class Vector>
inline void delta_strip(const DeltaColumns& a, int64_t column, const Vector& vector) {
  // Stores are done in order: one that waits for memory would hold up those to the copy.
  for (int64_t row = 0; row < a.rows && a.delta; ++row)
    for (int j = 0; j < V; ++j)
      __builtin_prefetch(a.delta + row * a.delta_stride + column + j * kLanes, 1);

  const StateStrip state{a.state + column, a.state_stride};
  const StateStrip work{a.work + column * a.key_dim, V * kLanes};
  StateStrip now = a.from_work ? work : state;  // where the state before the change lies
  DeltaChange<V> change{};
  const auto kept_key = [&](int64_t i, F32x16* s) {
    for (int j = 0; j < V; ++j) s[j] = vector.load(work.key(i) + j * kLanes);
  };
  const auto next_key = [&](int64_t i, F32x16* s) { change_key(change, i, vector, now, work, s); };

  for (int64_t row = 0; row < a.rows; ++row) {
    const float* k = a.k + row * a.key_dim;
    const float* q = a.q + row * a.key_dim;
    F32x16 for_key[V], for_query[V];
    if (row == 0 && a.from_work) {
      delta_recall<V>(k, q, a.key_dim, kept_key, for_key, for_query);
    } else if (row == 0) {
      replay_and_run<V>(a, column, vector, [&](const auto& read_key) {
        delta_recall<V>(k, q, a.key_dim, read_key, for_key, for_query);
      });
    } else {
      delta_recall<V>(k, q, a.key_dim, next_key, for_key, for_query);
      now = work;
    }
    change.alpha = set1(a.alpha[row]);
    change.k = k;
    const F32x16 key_query = set1(a.key_query[row]);
    for (int j = 0; j < V; ++j) {
      const F32x16 v = vector.load(a.v + row * a.v_stride + column + j * kLanes);
      change.delta[j] = mul(set1(a.beta[row]), sub(v, mul(change.alpha, for_key[j])));
      if (a.delta)
        vector.store(a.delta + row * a.delta_stride + column + j * kLanes, change.delta[j]);
      vector.store(a.out + row * a.out_stride + column + j * kLanes,
                   fma(key_query, change.delta[j], mul(change.alpha, for_query[j])));
    }
  }

  F32x16 s[V];
  if (a.rows == 0) {  // nobody has read the state, and it may have to be brought up to date
    replay_and_run<V>(a, column, vector, [&](const auto& read_key) {
      for (int64_t i = 0; i < a.key_dim; ++i) read_key(i, s);
    });
  } else if (a.to_work || !a.delta) {
    const StateStrip to = a.to_work ? work : state;
    for (int64_t i = 0; i < a.key_dim; ++i) change_key(change, i, vector, now, to, s);
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
