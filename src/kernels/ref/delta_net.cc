#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/delta_record.h"
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

// The state of one head, [key_dim, value_dim].
struct HeadState {
  float* values;
  int64_t key_dim, value_dim;

  // S <- alpha S + k d^T. All of it is rounded to float, so that a sequence gives the same result
  // in one step or in many, directly or by replay. Both products are exact in double.
  void update(float alpha, const float* k, const float* d) const {
    for (int64_t i = 0; i < key_dim; ++i) {
      for (int64_t c = 0; c < value_dim; ++c) {
        float& s = values[i * value_dim + c];
        s = float(double(alpha) * double(s) + double(k[i]) * double(d[c]));
      }
    }
  }

  // S^T x
  template <class Real>
  std::vector<double> times(const std::vector<Real>& x) const {
    std::vector<double> result(size_t(value_dim), 0.0);
    for (int64_t i = 0; i < key_dim; ++i)
      for (int64_t c = 0; c < value_dim; ++c)
        result[size_t(c)] += double(values[i * value_dim + c]) * double(x[size_t(i)]);
    return result;
  }
};

// What one token does to one head.
struct Token {
  std::vector<double> q;  // [key_dim], of unit length
  std::vector<float> k;   // [key_dim], of unit length
  const float* v;         // [value_dim]
  float alpha;
  double beta;
};

Token read_token(const DeltaNetArgs& args, int64_t row, int64_t head) {
  const int64_t value_heads = args.state.shape[1];
  const int64_t key_dim = args.state.shape[2], value_dim = args.state.shape[3];
  const int64_t key_offset = head / (value_heads / args.key_heads) * key_dim;
  const float* q = args.qkv.f32() + row * args.qkv.shape[1];
  const float* k = q + args.key_heads * key_dim;
  const float* v = k + args.key_heads * key_dim;
  const std::vector<double> unit_key = unit_length(k + key_offset, key_dim);
  const double a = args.a.f32()[row * value_heads + head];
  const double dt = softplus(a + double(args.dt_bias.f32()[head]));
  return {.q = unit_length(q + key_offset, key_dim),
          .k = {unit_key.begin(), unit_key.end()},
          .v = v + head * value_dim,
          .alpha = float(std::exp(-double(args.rate.f32()[head]) * dt)),
          .beta = sigmoid(double(args.b.f32()[row * value_heads + head]))};
}

// Advances the state and returns d.
std::vector<float> advance(const Token& token, const HeadState& state, float* out) {
  std::vector<double> predicted = state.times(token.k);
  std::vector<float> d;
  for (size_t c = 0; c < predicted.size(); ++c)
    d.push_back(float(token.beta * (double(token.v[c]) - double(token.alpha) * predicted[c])));
  state.update(token.alpha, token.k.data(), d.data());
  const std::vector<double> result = state.times(token.q);
  for (size_t c = 0; c < result.size(); ++c)
    out[c] = float(result[c] / std::sqrt(double(state.key_dim)));
  return d;
}

}  // namespace

void RefOps::delta_net(const DeltaNetArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t value_heads = dims["value_heads"];
  const int64_t key_dim = dims["key_dim"], value_dim = dims["value_dim"];
  const int64_t head_values = key_dim * value_dim;
  for (const Span& span : args.spans) {
    for (int64_t h = 0; h < value_heads; ++h) {
      const HeadState kept{args.state.f32() + (span.state_slot * value_heads + h) * head_values,
                           key_dim, value_dim};
      for (int64_t r = 0; r < span.replay; ++r) {
        const RecordedRow from = recorded_row(args, span, 1 - span.record_side, r, h);
        kept.update(*from.decay, from.key, from.delta);
      }
      // Rows that may be rejected advance a copy.
      std::vector<float> copy(kept.values, kept.values + head_values);
      const HeadState state{span.record ? copy.data() : kept.values, key_dim, value_dim};
      for (int64_t r = 0; r < span.rows; ++r) {
        const int64_t row = span.first_row + r;
        const Token token = read_token(args, row, h);
        const std::vector<float> d =
            advance(token, state, args.out.f32() + (row * value_heads + h) * value_dim);
        if (!span.record) continue;
        const RecordedRow to = recorded_row(args, span, span.record_side, r, h);
        std::copy(token.k.begin(), token.k.end(), to.key);
        std::copy(d.begin(), d.end(), to.delta);
        *to.decay = token.alpha;
      }
    }
  }
}

}  // namespace slip
