// What the tests of turboquant.h share.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

#include "quant/turboquant.h"

namespace slip {

// A rotated vector as the cache keeps it, and what that stands for.
struct Coded {
  std::vector<uint8_t> indices;
  std::vector<double> levels;
  float scale = 0;
  std::vector<double> decoded;  // scale * levels: in the rotated basis
};

inline Coded code(const std::vector<float>& rotated, int bits) {
  Coded coded;
  coded.indices.resize(rotated.size());
  coded.scale = turbo_encode(rotated, bits, coded.indices);
  for (const uint8_t index : coded.indices) {
    coded.levels.push_back(turbo_book(bits).levels[index]);
    coded.decoded.push_back(double(coded.scale) * coded.levels.back());
  }
  return coded;
}

inline std::vector<float> rotated(std::vector<float> x, KvSide side = KvSide::keys) {
  turbo_rotate(x, side);
  return x;
}

template <class A, class B>
double dot(const A& a, const B& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double(a[i]) * double(b[i]);
  return sum;
}

// |x - y|^2 / |x|^2
template <class A, class B>
double relative_error(const A& x, const B& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += std::pow(double(x[i]) - double(y[i]), 2);
  return sum / dot(x, x);
}

// Normal numbers, the same on every machine.
class Gaussian {
 public:
  explicit Gaussian(uint64_t seed) : bits_(seed) {}

  double operator()() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

  std::vector<float> vector(size_t dim) {
    std::vector<float> values(dim);
    for (float& value : values) value = float((*this)());
    return values;
  }

 private:
  double uniform() { return (double(bits_() >> 11) + 0.5) * 0x1p-53; }  // neither 0 nor 1
  std::mt19937_64 bits_;
};

}  // namespace slip
