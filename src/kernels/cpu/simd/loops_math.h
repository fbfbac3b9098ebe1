// Norms, activations, rounding to integers. Included once per instruction set, after dot_<isa>.h.
#pragma once

#include <cmath>

#include "kernels/cpu/simd/loops.h"

namespace slip {
namespace {

// exp(x) to about 1e-7 relative: 2^n * e^r with |r| <= ln(2)/2 and a degree-6 polynomial.
inline F32x16 exp(F32x16 x) {
  x = min(max(x, set1(-87.0f)), set1(88.0f));
  const F32x16 n = round_even(mul(x, set1(1.44269504f)));
  F32x16 r = fma(n, set1(-0.693145752f), x);
  r = fma(n, set1(-1.42860677e-6f), r);
  F32x16 p = set1(1.0f / 720);
  p = fma(p, r, set1(1.0f / 120));
  p = fma(p, r, set1(1.0f / 24));
  p = fma(p, r, set1(1.0f / 6));
  p = fma(p, r, set1(0.5f));
  p = fma(p, r, set1(1.0f));
  p = fma(p, r, set1(1.0f));
  return mul(p, exp2_integral(n));
}
inline F32x16 sigmoid(F32x16 x) { return div(set1(1.0f), add(set1(1.0f), exp(sub(zero(), x)))); }
inline F32x16 silu(F32x16 x) { return mul(x, sigmoid(x)); }

// Runs `body(offset, valid)` over [0, count) in steps of 16; the tail goes through a padded copy.
template <class Body>
inline void for_each_vector(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, kLanes);
  if (i < count) body(i, count - i);
}
inline F32x16 load_part(const float* p, int64_t valid) {
  if (valid == kLanes) return load(p);
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < valid; ++i) lanes[i] = p[i];
  return load(lanes);
}
inline void store_part(float* p, int64_t valid, F32x16 x) {
  if (valid == kLanes) return store(p, x);
  float lanes[kLanes];
  store(lanes, x);
  for (int64_t i = 0; i < valid; ++i) p[i] = lanes[i];
}

float inner_product(const float* x, const float* y, int64_t count) {
  F32x16 total = zero();
  for_each_vector(count, [&](int64_t i, int64_t valid) {
    total = fma(load_part(x + i, valid), load_part(y + i, valid), total);
  });
  return sum(total);
}

void rms_norm(const NormRow& row) {
  const float* x = row.x;
  const float mean = inner_product(x, x, row.count) / float(row.count);
  const float inverse = 1.0f / std::sqrt(mean + row.eps);
  for_each_vector(row.count, [&](int64_t i, int64_t valid) {
    F32x16 v = mul(load_part(x + i, valid), set1(inverse));
    if (row.scale) v = mul(v, load_part(row.scale + i, valid));
    if (row.add) v = add(load_part(row.out + i, valid), v);
    store_part(row.out + i, valid, mul(v, set1(row.factor)));
  });
}

void gated_rms_norm(const float* x, const float* gate, const float* scale, int64_t count, float eps,
                    float* out) {
  const float inverse = 1.0f / std::sqrt(inner_product(x, x, count) / float(count) + eps);
  for_each_vector(count, [&](int64_t i, int64_t valid) {
    const F32x16 v = mul(load_part(x + i, valid), set1(inverse));
    const F32x16 scaled = mul(v, load_part(scale + i, valid));
    store_part(out + i, valid, mul(scaled, silu(load_part(gate + i, valid))));
  });
}

void l2_normalize(const float* x, int64_t count, float factor, float* out) {
  const float inverse = factor / std::sqrt(inner_product(x, x, count) + 1e-6f);
  for_each_vector(count, [&](int64_t i, int64_t valid) {
    store_part(out + i, valid, mul(load_part(x + i, valid), set1(inverse)));
  });
}

void silu_mul(const float* gate, const float* up, int64_t count, float* out) {
  for_each_vector(count, [&](int64_t i, int64_t valid) {
    store_part(out + i, valid, mul(silu(load_part(gate + i, valid)), load_part(up + i, valid)));
  });
}

// x / 2 * (1 + tanh(u)) = x * sigmoid(2 u)
inline F32x16 gelu(F32x16 x) {
  constexpr float kTwiceRoot = 1.59576912f;  // 2 * sqrt(2 / pi)
  const F32x16 cubic = fma(mul(mul(x, x), x), set1(0.044715f), x);
  return mul(x, sigmoid(mul(cubic, set1(kTwiceRoot))));
}

void gelu_mul(const float* gate, const float* up, int64_t count, float* out) {
  for_each_vector(count, [&](int64_t i, int64_t valid) {
    store_part(out + i, valid, mul(gelu(load_part(gate + i, valid)), load_part(up + i, valid)));
  });
}

// tanh(u) = 2 * sigmoid(2 u) - 1
void soft_cap(float cap, int64_t count, float* x) {
  for_each_vector(count, [&](int64_t i, int64_t valid) {
    const F32x16 inner = sigmoid(mul(load_part(x + i, valid), set1(2 / cap)));
    store_part(x + i, valid, sub(mul(inner, set1(2 * cap)), set1(cap)));
  });
}

void scale(float factor, int64_t count, float* x) {
  for_each_vector(count, [&](int64_t i, int64_t valid) {
    store_part(x + i, valid, mul(load_part(x + i, valid), set1(factor)));
  });
}

void sigmoid_mul(const float* gate, int64_t count, float* x) {
  for_each_vector(count, [&](int64_t i, int64_t valid) {
    store_part(x + i, valid, mul(load_part(x + i, valid), sigmoid(load_part(gate + i, valid))));
  });
}

void scaled_add(const float* x, float factor, int64_t count, float* out) {
  for_each_vector(count, [&](int64_t i, int64_t valid) {
    // Not fused, so that the result is that of the plain composition in kernels/ops.cc.
    const F32x16 scaled = mul(load_part(x + i, valid), set1(factor));
    store_part(out + i, valid, add(load_part(out + i, valid), scaled));
  });
}

void conv_silu(const float* const* inputs, const float* weight, int64_t weight_stride,
               int64_t width, int64_t channels, float* out) {
  for_each_vector(channels, [&](int64_t i, int64_t valid) {
    F32x16 total = zero();
    for (int64_t w = 0; w < width; ++w)
      total = fma(load_part(inputs[w] + i, valid), load_part(weight + w * weight_stride + i, valid),
                  total);
    store_part(out + i, valid, silu(total));
  });
}

template <int kBytes>
void quantize_row(const float* x, int64_t count, int64_t group, int8_t* codes, float* scales,
                  int32_t* sums) {
  const F32x16 bound = set1(activation_steps(kBytes));
  for (int64_t begin = 0, g = 0; begin < count; begin += group, ++g) {
    const int64_t size = begin + group < count ? group : count - begin;
    F32x16 peak = zero();
    for_each_vector(size, [&](int64_t i, int64_t valid) {
      peak = max(peak, abs(load_part(x + begin + i, valid)));
    });
    const float scale = largest(peak) / activation_steps(kBytes);
    const F32x16 inverse = set1(scale > 0 ? 1.0f / scale : 0.0f);
    F32x16 total = zero();  // integers below 2^24: exact in any order
    for_each_vector(size, [&](int64_t i, int64_t valid) {
      // Rounding of 1 / scale could push the peak past the last step.
      F32x16 v = mul(load_part(x + begin + i, valid), inverse);
      v = round_even(max(min(v, bound), sub(zero(), bound)));
      store_activations<kBytes>(codes + kBytes * (begin + i), v);
      total = add(total, v);
    });
    scales[g] = scale;
    sums[g] = int32_t(sum(total));
  }
}

// A lane's places are floats, which have no comparison of their own to choose by: `above` is 1
// where a value is the largest so far.
RowPeak peak(const float* x, int64_t count) {
  F32x16 value = set1(-INFINITY), runner_up = value, place = zero();
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const F32x16 v = load(x + i);
    const F32x16 above = sub(set1(1), one_if_at_least(value, v));
    place = fma(above, sub(set1(float(i)), place), place);
    runner_up = max(min(v, value), runner_up);
    value = max(v, value);
  }
  float values[kLanes], others[kLanes], places[kLanes];
  store(values, value);
  store(others, runner_up);
  store(places, place);
  RowPeak best{0, -INFINITY, -INFINITY};
  const auto meet = [&](int64_t index, float v) {
    if (v > best.value || (v == best.value && index < best.index)) {
      best = {index, v, best.value};
    } else if (v > best.runner_up) {
      best.runner_up = v;
    }
  };
  bool numbers = true;
  for (int64_t j = 0; j < kLanes; ++j) {
    const int64_t index = int64_t(places[j]) + j;
    numbers &= values[j] == -INFINITY || x[index] == values[j];
    meet(index, values[j]);
    if (others[j] > best.runner_up) best.runner_up = others[j];
  }
  if (!numbers) {  // of a damaged model: slowly, then
    best = {0, -INFINITY, -INFINITY};
    i = 0;
  }
  for (; i < count; ++i) meet(i, x[i]);
  return best;
}

}  // namespace
}  // namespace slip
