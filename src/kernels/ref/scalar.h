// Scalar functions and reads that several reference ops share.
#pragma once

#include <cmath>
#include <numbers>

#include "kernels/args.h"
#include "quant/number_formats.h"
#include "tensor/view.h"

namespace slip {

inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

inline double silu(double x) { return x * sigmoid(x); }

inline double gelu_tanh(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

inline double activate(Activation activation, double x) {
  return activation == Activation::silu ? silu(x) : gelu_tanh(x);
}

// log(1 + e^x); above 20 the difference from x is far below a float's resolution.
inline double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }

// 1 / sqrt(mean(x^2) + eps)
inline double inverse_rms(const float* x, int64_t dim, double eps) {
  double sum = 0;
  for (int64_t i = 0; i < dim; ++i) sum += double(x[i]) * double(x[i]);
  return 1.0 / std::sqrt(sum / double(dim) + eps);
}

}  // namespace slip
