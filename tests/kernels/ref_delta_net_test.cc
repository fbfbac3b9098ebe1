// The reference's convolution and delta rule against independently written versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

Span span_of(int64_t first_row, int64_t rows, int32_t slot) {
  return {.first_row = first_row, .rows = rows, .start = 0, .state_slot = slot, .pages = {}};
}

double silu(double x) { return x / (1 + std::exp(-x)); }

TEST(RefCausalConv, LastWeightMeetsTheCurrentToken) {
  // One channel, an impulse of 1 at row 1: the outputs are the weights, last one first.
  const Guarded x = constant_tensor({5, 1}, 0), weight = constant_tensor({4, 1}, 0);
  x.f32()[1] = 1;
  for (int m = 0; m < 4; ++m) weight.f32()[m] = float(m + 1);
  const Guarded tail = constant_tensor({1, 3, 1}, 0);
  const Guarded out({5, 1});
  const Span span = span_of(0, 5, 0);
  make_ref_ops()->causal_conv(
      {.x = x, .weight = weight, .tail = tail, .out = out, .spans = {&span, 1}});
  const double expected[] = {0, silu(4), silu(3), silu(2), silu(1)};
  for (int t = 0; t < 5; ++t) EXPECT_NEAR(out.f32()[t], expected[t], 1e-6) << t;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(tail.f32()[i], 0);  // rows 2, 3, 4
}

TEST(RefCausalConv, ReadsTheTailOldestFirst) {
  const Guarded x = constant_tensor({1, 1}, 1000), weight = constant_tensor({4, 1}, 0);
  for (int m = 0; m < 4; ++m) weight.f32()[m] = float(std::pow(0.1, 3 - m));
  const Guarded tail = constant_tensor({2, 3, 1}, 0);
  for (int i = 0; i < 3; ++i) tail.f32()[3 + i] = float(i + 1) * 1000;  // slot 1
  const Guarded out({1, 1});
  const Span span = span_of(0, 1, 1);
  make_ref_ops()->causal_conv(
      {.x = x, .weight = weight, .tail = tail, .out = out, .spans = {&span, 1}});
  EXPECT_NEAR(out.f32()[0], 1000 + 300 + 20 + 1, 1e-2);
  const float expected[] = {0, 0, 0, 2000, 3000, 1000};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(tail.f32()[i], expected[i]);
}

TEST(RefCausalConv, TwoStepsEqualOne) {
  Rng rng(1);
  const int64_t rows = 9, channels = 5;
  const Guarded x = random_tensor({rows, channels}, rng);
  const Guarded weight = random_tensor({4, channels}, rng);
  const Guarded start = random_tensor({1, 3, channels}, rng);
  const auto ops = make_ref_ops();
  Guarded whole({rows, channels});
  const Guarded whole_tail = copy_of(start);
  const Span all = span_of(0, rows, 0);
  ops->causal_conv(
      {.x = x, .weight = weight, .tail = whole_tail, .out = whole, .spans = {&all, 1}});
  for (int64_t cut = 1; cut < rows; ++cut) {
    Guarded parts({rows, channels});
    const Guarded tail = copy_of(start);
    // Two spans of one step, in order, and of the same slot.
    const Span spans[] = {span_of(0, cut, 0), span_of(cut, rows - cut, 0)};
    ops->causal_conv({.x = x, .weight = weight, .tail = tail, .out = parts, .spans = spans});
    expect_same_bits(parts.values(), whole.values(), cat("cut at ", cut));
    expect_same_bits(tail.values(), whole_tail.values(), cat("tail, cut at ", cut));
  }
}

TEST(RefCausalConv, RecordsInputsBehindTheTailAndReplaysThem) {
  // One channel; the output is the sum of the current input and the two before it.
  const Guarded weight = constant_tensor({3, 1}, 1);
  const Guarded tail = constant_tensor({1, 2 + 3, 1}, 0);
  const auto ops = make_ref_ops();
  const auto step = [&](std::vector<float> inputs, bool record, int32_t replay) {
    const Guarded x({int64_t(inputs.size()), 1}), out({int64_t(inputs.size()), 1});
    std::copy(inputs.begin(), inputs.end(), x.f32());
    Span span = span_of(0, int64_t(inputs.size()), 0);
    span.record = record;
    span.replay = replay;
    ops->causal_conv({.x = x, .weight = weight, .tail = tail, .out = out, .spans = {&span, 1}});
    return std::vector<float>(out.values().begin(), out.values().end());
  };
  const auto sums = [](std::vector<double> of) {
    std::vector<float> result;
    for (const double sum : of) result.push_back(float(silu(sum)));
    return result;
  };
  const auto tail_is = [&](std::vector<float> begin) {
    return std::equal(begin.begin(), begin.end(), tail.f32());
  };
  EXPECT_EQ(step({1, 2}, false, 0), sums({1, 3}));
  EXPECT_EQ(step({3, 4, 90}, true, 0), sums({6, 9, 97}));
  EXPECT_TRUE(tail_is({1, 2, 3, 4, 90})) << "the tail as it was, then what may be rejected";
  EXPECT_EQ(step({5, 91}, true, 2), sums({12, 100}));
  EXPECT_TRUE(tail_is({3, 4, 5, 91})) << "moved on by the two that were accepted";
  EXPECT_EQ(step({6}, false, 1), sums({15}));
  EXPECT_TRUE(tail_is({5, 6}));
}

using Matrix = std::vector<std::vector<double>>;

Matrix zeros(size_t rows, size_t columns) {
  return Matrix(rows, std::vector<double>(columns, 0.0));
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c = zeros(a.size(), b[0].size());
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b[0].size(); ++j)
      for (size_t k = 0; k < b.size(); ++k) c[i][j] += a[i][k] * b[k][j];
  return c;
}

Matrix transposed(const Matrix& a) {
  Matrix t = zeros(a[0].size(), a.size());
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[0].size(); ++j) t[j][i] = a[i][j];
  return t;
}

Matrix combined(double s, const Matrix& a, double u, const Matrix& b) {
  Matrix c = a;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[0].size(); ++j) c[i][j] = s * a[i][j] + u * b[i][j];
  return c;
}

// A column of `dim` values, divided by its length.
Matrix unit_column(const float* x, size_t dim) {
  Matrix column = zeros(dim, 1);
  for (size_t i = 0; i < dim; ++i) column[i][0] = x[i];
  const double length = std::sqrt(product(transposed(column), column)[0][0] + 1e-6);
  return combined(1 / length, column, 0, column);
}

// S <- (I - beta k k^T) alpha S + beta k v^T; o = S^T q / sqrt(dk), with matrices.
TEST(RefDeltaNet, EqualsTheMatrixRecurrence) {
  constexpr int64_t kKeyHeads = 2, kValueHeads = 4, kKeyDim = 3, kValueDim = 5, kRows = 6;
  Rng rng(2);
  const Guarded qkv =
      random_tensor({kRows, 2 * kKeyHeads * kKeyDim + kValueHeads * kValueDim}, rng);
  const Guarded a = random_tensor({kRows, kValueHeads}, rng);
  const Guarded b = random_tensor({kRows, kValueHeads}, rng);
  const Guarded rate = constant_tensor({kValueHeads}, 0.5f);
  const Guarded dt_bias = random_tensor({kValueHeads}, rng);
  const Guarded state = random_tensor({2, kValueHeads, kKeyDim, kValueDim}, rng);
  const Guarded before = copy_of(state);
  const Guarded out({kRows, kValueHeads, kValueDim});
  const Span span = span_of(0, kRows, 1);
  make_ref_ops()->delta_net({.qkv = qkv,
                             .a = a,
                             .b = b,
                             .rate = rate,
                             .dt_bias = dt_bias,
                             .state = state,
                             .out = out,
                             .key_heads = kKeyHeads,
                             .spans = {&span, 1}});
  expect_same_bits(rows_of(state, 0, 1), rows_of(before, 0, 1), "the other slot");

  for (int64_t h = 0; h < kValueHeads; ++h) {
    const float* stored = before.f32() + (kValueHeads + h) * kKeyDim * kValueDim;
    Matrix s = zeros(kKeyDim, kValueDim);
    for (size_t i = 0; i < kKeyDim; ++i)
      for (size_t j = 0; j < kValueDim; ++j) s[i][j] = stored[i * kValueDim + j];
    for (int64_t t = 0; t < kRows; ++t) {
      const float* row = qkv.f32() + t * qkv.view().shape[1];
      const Matrix q = unit_column(row + h / 2 * kKeyDim, kKeyDim);
      const Matrix k = unit_column(row + (kKeyHeads + h / 2) * kKeyDim, kKeyDim);
      Matrix v = zeros(kValueDim, 1);
      for (size_t j = 0; j < kValueDim; ++j)
        v[j][0] = row[2 * kKeyHeads * kKeyDim + h * kValueDim + int64_t(j)];
      const double beta = 1 / (1 + std::exp(-double(b.f32()[t * kValueHeads + h])));
      const double step =
          std::log(1 + std::exp(double(a.f32()[t * kValueHeads + h]) + double(dt_bias.f32()[h])));
      const Matrix kk = product(k, transposed(k));
      const Matrix decayed = combined(std::exp(-0.5 * step), s, 0, s);
      s = combined(1, combined(1, decayed, -beta, product(kk, decayed)), beta,
                   product(k, transposed(v)));
      const Matrix o = product(transposed(s), q);
      for (size_t j = 0; j < kValueDim; ++j)
        EXPECT_NEAR(out.f32()[(t * kValueHeads + h) * kValueDim + int64_t(j)],
                    o[j][0] / std::sqrt(double(kKeyDim)), 1e-6)
            << "head " << h << ", row " << t;
    }
    const float* after = state.f32() + (kValueHeads + h) * kKeyDim * kValueDim;
    for (size_t i = 0; i < kKeyDim; ++i)
      for (size_t j = 0; j < kValueDim; ++j) EXPECT_NEAR(after[i * kValueDim + j], s[i][j], 1e-6);
  }
}

// What a row records is what it would have done to the state, and replaying does it.
TEST(RefDeltaNet, RecordsAndReplaysTheUpdateOfEachHead) {
  constexpr int64_t kKeyHeads = 2, kValueHeads = 4, kKeyDim = 3, kValueDim = 5;
  Rng rng(3);
  const Guarded qkv = random_tensor({1, 2 * kKeyHeads * kKeyDim + kValueHeads * kValueDim}, rng);
  const Guarded a = random_tensor({1, kValueHeads}, rng), b = random_tensor({1, kValueHeads}, rng);
  const Guarded rate = constant_tensor({kValueHeads}, 0.5f);
  const Guarded dt_bias = random_tensor({kValueHeads}, rng);
  const Guarded state = random_tensor({1, kValueHeads, kKeyDim, kValueDim}, rng);
  const Guarded before = copy_of(state);
  const Guarded keys({2, 1, kKeyHeads, kKeyDim}), deltas({2, 1, kValueHeads, kValueDim});
  const Guarded decays({2, 1, kValueHeads}), out({1, kValueHeads, kValueDim});
  const auto step = [&](const Span& span) {
    make_ref_ops()->delta_net({.qkv = qkv,
                               .a = a,
                               .b = b,
                               .rate = rate,
                               .dt_bias = dt_bias,
                               .state = state,
                               .record = {keys, deltas, decays},
                               .out = out,
                               .key_heads = kKeyHeads,
                               .spans = {&span, 1}});
  };
  Span recording = span_of(0, 1, 0);
  recording.record = true;
  recording.record_side = 1;
  step(recording);
  expect_same_bits(state.values(), before.values(), "state");

  Span replaying = span_of(0, 0, 0);
  replaying.replay = 1;
  replaying.record_side = 0;
  step(replaying);
  for (int64_t h = 0; h < kValueHeads; ++h) {
    const Matrix k = unit_column(qkv.f32() + (kKeyHeads + h / 2) * kKeyDim, kKeyDim);
    const double alpha =
        std::exp(-0.5 * std::log(1 + std::exp(double(a.f32()[h]) + double(dt_bias.f32()[h]))));
    const double beta = 1 / (1 + std::exp(-double(b.f32()[h])));
    EXPECT_NEAR(decays.f32()[kValueHeads + h], alpha, 1e-6);
    for (size_t i = 0; i < kKeyDim; ++i)
      EXPECT_NEAR(keys.f32()[(kKeyHeads + h / 2) * kKeyDim + int64_t(i)], k[i][0], 1e-6);
    for (int64_t c = 0; c < kValueDim; ++c) {
      const auto s = [&](const Guarded& of, size_t i) {
        return double(of.f32()[(h * kKeyDim + int64_t(i)) * kValueDim + c]);
      };
      double predicted = 0;
      for (size_t i = 0; i < kKeyDim; ++i) predicted += alpha * s(before, i) * k[i][0];
      const double v = qkv.f32()[2 * kKeyHeads * kKeyDim + h * kValueDim + c];
      const double d = beta * (v - predicted);
      EXPECT_NEAR(deltas.f32()[(kValueHeads + h) * kValueDim + c], d, 1e-6);
      for (size_t i = 0; i < kKeyDim; ++i)
        EXPECT_NEAR(s(state, i), alpha * s(before, i) + k[i][0] * d, 1e-6);
    }
  }
}

}  // namespace
}  // namespace slip
