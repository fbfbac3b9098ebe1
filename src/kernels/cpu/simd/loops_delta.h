// The delta rule, token by token, for a strip of columns of one head's state. Included once per
// instruction set, after dot_<isa>.h.
#pragma once

#include "kernels/cpu/simd/loops.h"

namespace slip {
namespace {

// V vectors of columns. A strip of the state (128 x 32 floats = 16 KB) stays in the first-level
// cache over all rows. Two chains (even and odd keys) hide the latency of the sums.
template <int V>
inline void delta_strip(const DeltaColumns& a, int64_t column) {
  float* state = a.state + column;
  for (int64_t row = 0; row < a.rows; ++row) {
    const float* k = a.k + row * a.key_dim;
    const float* q = a.q + row * a.key_dim;
    const F32x16 alpha = set1(a.alpha[row]);
    F32x16 even[V], odd[V], delta[V];
    for (int j = 0; j < V; ++j) even[j] = odd[j] = zero();
    int64_t i = 0;
    for (; i + 2 <= a.key_dim; i += 2) {
      const F32x16 k0 = set1(k[i]), k1 = set1(k[i + 1]);
      const float* s0 = state + i * a.state_stride;
      const float* s1 = s0 + a.state_stride;
      for (int j = 0; j < V; ++j) {
        even[j] = fma(load(s0 + j * kLanes), k0, even[j]);
        odd[j] = fma(load(s1 + j * kLanes), k1, odd[j]);
      }
    }
    for (; i < a.key_dim; ++i)
      for (int j = 0; j < V; ++j)
        even[j] = fma(load(state + i * a.state_stride + j * kLanes), set1(k[i]), even[j]);
    for (int j = 0; j < V; ++j) {
      const F32x16 predicted = mul(alpha, add(even[j], odd[j]));
      const F32x16 v = load(a.v + row * a.v_stride + column + j * kLanes);
      delta[j] = mul(set1(a.beta[row]), sub(v, predicted));
      even[j] = odd[j] = zero();
    }
    const auto update = [&](int64_t key, F32x16* out) {
      const F32x16 kk = set1(k[key]), qq = set1(q[key]);
      float* s = state + key * a.state_stride;
      for (int j = 0; j < V; ++j) {
        const F32x16 next = fma(kk, delta[j], mul(alpha, load(s + j * kLanes)));
        store(s + j * kLanes, next);
        out[j] = fma(next, qq, out[j]);
      }
    };
    for (i = 0; i + 2 <= a.key_dim; i += 2) {
      update(i, even);
      update(i + 1, odd);
    }
    for (; i < a.key_dim; ++i) update(i, even);
    for (int j = 0; j < V; ++j)
      store(a.out + row * a.out_stride + column + j * kLanes, add(even[j], odd[j]));
  }
}

// A single column, for heads that do not fill whole vectors.
inline void delta_column(const DeltaColumns& a, int64_t column) {
  float* state = a.state + column;
  for (int64_t row = 0; row < a.rows; ++row) {
    const float* k = a.k + row * a.key_dim;
    const float* q = a.q + row * a.key_dim;
    float predicted = 0, out = 0;
    for (int64_t i = 0; i < a.key_dim; ++i) predicted += state[i * a.state_stride] * k[i];
    const float delta = a.beta[row] * (a.v[row * a.v_stride + column] - a.alpha[row] * predicted);
    for (int64_t i = 0; i < a.key_dim; ++i) {
      float& s = state[i * a.state_stride];
      s = a.alpha[row] * s + k[i] * delta;
      out += s * q[i];
    }
    a.out[row * a.out_stride + column] = out;
  }
}

void delta_columns(const DeltaColumns& a) {
  int64_t column = 0;
  for (; column + 2 * kLanes <= a.columns; column += 2 * kLanes) delta_strip<2>(a, column);
  for (; column + kLanes <= a.columns; column += kLanes) delta_strip<1>(a, column);
  for (; column < a.columns; ++column) delta_column(a, column);
}

}  // namespace
}  // namespace slip
