// TurboQuant (quant/turboquant.h): rotation and coding of a vector, with the bits that the scalar
// definition has. Included once per instruction set, after loops_math.h. Sizes are multiples of 16.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/simd/loops.h"

namespace slip {
namespace {

// x <- H x / sqrt(dim), short strides first
inline void hadamard(int64_t dim, float* x) {
  for (int64_t i = 0; i < dim; i += kLanes)
    store(x + i, butterfly<8>(butterfly<4>(butterfly<2>(butterfly<1>(load(x + i))))));
  for (int64_t stride = kLanes; stride < dim; stride *= 2) {
    for (int64_t begin = 0; begin < dim; begin += 2 * stride) {
      for (int64_t i = begin; i < begin + stride; i += kLanes) {
        const F32x16 a = load(x + i), b = load(x + i + stride);
        store(x + i, add(a, b));
        store(x + i + stride, sub(a, b));
      }
    }
  }
  const F32x16 norm = set1(1.0f / std::sqrt(float(dim)));
  for (int64_t i = 0; i < dim; i += kLanes) store(x + i, mul(load(x + i), norm));
}

inline void multiply_by(const float* signs, int64_t dim, float* x) {
  for (int64_t i = 0; i < dim; i += kLanes) store(x + i, mul(load(x + i), load(signs + i)));
}

void turbo_rotate(const float* signs, int64_t dim, float* x) {
  multiply_by(signs, dim, x);
  hadamard(dim, x);
}

void turbo_unrotate(const float* signs, int64_t dim, float* x) {
  hadamard(dim, x);
  multiply_by(signs, dim, x);
}

// In double, and in several chains that the compiler lays side by side.
inline double dot_in_double(const float* a, const float* b, int64_t count) {
  constexpr int64_t kChains = 16;
  double part[kChains] = {};
  for (int64_t i = 0; i < count; i += kChains)
    for (int64_t j = 0; j < kChains; ++j) part[j] += double(a[i + j]) * double(b[i + j]);
  double total = 0;
  for (const double each : part) total += each;
  return total;
}

// Vectors that are too short, or not finite, have no code.
inline bool is_codable(double squared) {
  return squared >= 1e-40 && squared <= std::numeric_limits<double>::max();
}

inline float neighbour(float x, int steps) {
  if (x == 0) return float(steps) * std::numeric_limits<float>::denorm_min();
  int32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  bits += x > 0 ? steps : -steps;
  std::memcpy(&x, &bits, sizeof(bits));
  return x;
}

// The smallest float that reaches a threshold when it is multiplied in double, as the definition
// does: comparing with it takes no multiplication.
inline float smallest_reaching(float threshold, double unit) {
  const auto reaches = [&](float x) { return double(threshold) <= double(x) * unit; };
  auto x = float(double(threshold) / unit);
  while (reaches(neighbour(x, -1))) x = neighbour(x, -1);
  while (!reaches(x)) x = neighbour(x, 1);
  return x;
}

float turbo_encode(const float* rotated, int64_t dim, const CodeBook& book, uint8_t* indices) {
  constexpr int kMostThresholds = 15;
  constexpr int64_t kMostDims = 1024;
  const double squared = dot_in_double(rotated, rotated, dim);
  if (!is_codable(squared)) {
    std::memset(indices, (book.thresholds + 1) / 2, size_t(dim));
    return 0;
  }
  const double unit = double(book.kappa) * std::sqrt(double(dim) / squared);
  float cuts[kMostThresholds], rises[kMostThresholds];  // of the values, of the levels
  for (int i = 0; i < book.thresholds; ++i) {
    cuts[i] = smallest_reaching(book.threshold[i], unit);
    rises[i] = float(book.levels[i + 1] - book.levels[i]);
  }
  alignas(64) float levels[kMostDims];
  for (int64_t d = 0; d < dim; d += kLanes) {
    const F32x16 x = load(rotated + d);
    F32x16 index = zero(), level = set1(float(book.levels[0]));
    for (int i = 0; i < book.thresholds; ++i) {
      const F32x16 above = one_if_at_least(x, set1(cuts[i]));
      index = add(index, above);
      level = fma(above, set1(rises[i]), level);
    }
    store(levels + d, level);
    store_int8(reinterpret_cast<int8_t*>(indices) + d, index);
  }
  return float(squared / dot_in_double(rotated, levels, dim));
}

float turbo_encode_int8(const float* rotated, int64_t dim, int8_t* codes) {
  if (!is_codable(dot_in_double(rotated, rotated, dim))) {
    std::memset(codes, 0, size_t(dim));
    return 0;
  }
  F32x16 peak = zero();
  for (int64_t d = 0; d < dim; d += kLanes) peak = max(peak, abs(load(rotated + d)));
  const float scale = bf16_to_float(float_to_bf16(largest(peak) / 127.0f));
  for (int64_t d = 0; d < dim; d += kLanes)
    store_int8(codes + d, round_even(div(load(rotated + d), set1(scale))));
  return scale;
}

// x ~ scale * codes, with kSteps steps to the largest. Nothing but zeros when x is that small.
template <int kSteps>
inline float round_to_int16(const float* x, int64_t count, int16_t* codes) {
  constexpr float kSmallest = 1e-30f;  // the inverse must be finite
  F32x16 peak = zero();
  for (int64_t i = 0; i < count; i += kLanes) peak = max(peak, abs(load(x + i)));
  const float top = largest(peak);
  const float inverse = top > kSmallest ? float(kSteps) / top : 0.0f;
  for (int64_t i = 0; i < count; i += kLanes)
    store_int16(codes + i, round_even(mul(load(x + i), set1(inverse))));
  return top / float(kSteps);
}

float round_query(const float* q, int64_t dim, int16_t* codes) {
  return round_to_int16<kQuerySteps>(q, dim, codes);
}

}  // namespace
}  // namespace slip
