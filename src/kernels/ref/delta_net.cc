#include <cmath>
#include <vector>

#include "kernels/ref/ref_ops_impl.h"
#include "kernels/ref/scalar.h"

namespace slip {
namespace {

// x / sqrt(sum(x^2) + 1e-6)
std::vector<double> unit_length(const float* x, int64_t dim) {
  double sum = 0;
  for (int64_t i = 0; i < dim; ++i) sum += double(x[i]) * double(x[i]);
  const double inverse = 1.0 / std::sqrt(sum + 1e-6);
  std::vector<double> result(size_t(dim), 0.0);
  for (int64_t i = 0; i < dim; ++i) result[size_t(i)] = double(x[i]) * inverse;
  return result;
}

struct Token {
  std::vector<double> q, k;  // [key_dim], of unit length
  const float* v;            // [value_dim]
  double alpha, beta;
};

// One token, one head. Column c of the state is independent of the others. The state is rounded to
// float after every token, so that a sequence gives the same result in one step or in many.
void advance(const Token& token, int64_t value_dim, float* state, float* out) {
  const size_t key_dim = token.k.size();
  std::vector<double> column(key_dim, 0.0);
  for (int64_t c = 0; c < value_dim; ++c) {
    double predicted = 0;
    for (size_t i = 0; i < key_dim; ++i) {
      column[i] = token.alpha * double(state[int64_t(i) * value_dim + c]);
      predicted += column[i] * token.k[i];
    }
    const double delta = token.beta * (double(token.v[c]) - predicted);
    double result = 0;
    for (size_t i = 0; i < key_dim; ++i) {
      column[i] += token.k[i] * delta;
      result += column[i] * token.q[i];
      state[int64_t(i) * value_dim + c] = float(column[i]);
    }
    out[c] = float(result / std::sqrt(double(key_dim)));
  }
}

}  // namespace

void RefOps::delta_net(const DeltaNetArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t key_heads = args.key_heads, key_dim = dims["key_dim"];
  const int64_t value_heads = dims["value_heads"], value_dim = dims["value_dim"];
  const int64_t head_state = key_dim * value_dim;
  for (const Span& span : args.spans) {
    float* state = args.state.f32() + span.state_slot * value_heads * head_state;
    for (int64_t r = span.first_row; r < span.first_row + span.rows; ++r) {
      const float* q = args.qkv.f32() + r * args.qkv.shape[1];
      const float* k = q + key_heads * key_dim;
      const float* v = k + key_heads * key_dim;
      for (int64_t h = 0; h < value_heads; ++h) {
        const int64_t key_head = h / (value_heads / key_heads);
        const double a = args.a.f32()[r * value_heads + h];
        const double b = args.b.f32()[r * value_heads + h];
        const double rate = args.rate.f32()[h];
        const Token token{.q = unit_length(q + key_head * key_dim, key_dim),
                          .k = unit_length(k + key_head * key_dim, key_dim),
                          .v = v + h * value_dim,
                          .alpha = std::exp(-rate * softplus(a + double(args.dt_bias.f32()[h]))),
                          .beta = sigmoid(b)};
        advance(token, value_dim, state + h * head_state,
                args.out.f32() + (r * value_heads + h) * value_dim);
      }
    }
  }
}

}  // namespace slip
