// causal_conv and delta_net of every backend against the reference.
#include <algorithm>
#include <cmath>

#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

// Rows of several sequences, some rows belonging to nobody, slots in no order.
struct Ragged {
  std::vector<Span> spans;
  int64_t rows = 0;
  static constexpr int32_t kSlots = 7;

  explicit Ragged(std::initializer_list<int64_t> lengths) {
    constexpr int32_t kOrder[kSlots] = {4, 0, 6, 2, 5, 1, 3};
    for (const int64_t length : lengths) {
      const int32_t slot = kOrder[spans.size()];
      spans.push_back(
          {.first_row = rows, .rows = length, .start = 0, .state_slot = slot, .pages = {}});
      rows += length + (spans.size() == 2 ? 1 : 0);  // a gap after the second
    }
  }
};

const Ragged kRagged[] = {Ragged{1},  Ragged{2},       Ragged{3},
                          Ragged{5},  Ragged{8},       Ragged{17},
                          Ragged{65}, Ragged{1, 1, 1}, Ragged{3, 1, 70, 2, 8}};

class ConvEqual : public OpsTest {};

TEST_P(ConvEqual, CausalConv) {
  Rng rng(1);
  for (const Ragged& step : kRagged) {
    for (const int64_t channels : {1, 5, 16, 33, 96}) {
      for (const int64_t width : {1, 2, 4}) {
        const Guarded x = random_tensor({step.rows, channels}, rng);
        const Guarded weight = random_tensor({width, channels}, rng);
        const Guarded tail = random_tensor({Ragged::kSlots, width - 1, channels}, rng);
        const Guarded right_tail = copy_of(tail);
        Guarded right({step.rows, channels}), ours({step.rows, channels});
        ref().causal_conv(
            {.x = x, .weight = weight, .tail = right_tail, .out = right, .spans = step.spans});
        const Guarded ours_tail = copy_of(tail);
        ops().causal_conv(
            {.x = x, .weight = weight, .tail = ours_tail, .out = ours, .spans = step.spans});
        const std::string what =
            cat(channels, " channels, width ", width, ", ", step.rows, " rows");
        expect_same_bits(ours_tail.values(), right_tail.values(), what + ", tail");
        // Rows outside every span stay NaN in both.
        for (const Span& span : step.spans)
          expect_close(rows_of(ours, span.first_row, span.rows),
                       rows_of(right, span.first_row, span.rows), exp_error() + 8 * kRoundoff,
                       // Terms cancel: four products of the order of at most 16.
                       64 * 8 * kRoundoff, what);
        // Row by row.
        const Guarded steps_tail = copy_of(tail);
        Guarded steps({step.rows, channels});
        for (const Span& span : step.spans) {
          for (int64_t t = 0; t < span.rows; ++t) {
            Span one = span;
            one.first_row += t;
            one.rows = 1;
            ops().causal_conv(
                {.x = x, .weight = weight, .tail = steps_tail, .out = steps, .spans = {&one, 1}});
          }
        }
        expect_same_bits(steps.values(), ours.values(), what + ", row by row");
        expect_same_bits(steps_tail.values(), ours_tail.values(), what + ", tail row by row");
      }
    }
  }
}

SLIP_TEST_BACKENDS(ConvEqual);

struct DeltaShape {
  int64_t key_heads, value_heads, key_dim, value_dim;
};

struct DeltaCase {
  DeltaShape shape;
  Guarded qkv, a, b, rate, dt_bias, state;

  DeltaCase(const DeltaShape& s, int64_t rows, Rng& rng)
      : shape(s),
        qkv(random_tensor({rows, 2 * s.key_heads * s.key_dim + s.value_heads * s.value_dim}, rng)),
        a(random_tensor({rows, s.value_heads}, rng, 2)),
        b(random_tensor({rows, s.value_heads}, rng, 2)),
        rate(random_tensor({s.value_heads}, rng)),
        dt_bias(random_tensor({s.value_heads}, rng)),
        state(random_tensor({Ragged::kSlots, s.value_heads, s.key_dim, s.value_dim}, rng)) {
    for (float& value : rate.values()) value = std::exp(value);  // positive, as exp(A_log) is
  }

  Shape out_shape() const { return {qkv.view().shape[0], shape.value_heads, shape.value_dim}; }

  DeltaNetArgs args(const View& state_view, const View& out, std::span<const Span> spans) const {
    return {.qkv = qkv,
            .a = a,
            .b = b,
            .rate = rate,
            .dt_bias = dt_bias,
            .state = state_view,
            .out = out,
            .key_heads = shape.key_heads,
            .spans = spans};
  }
};

float plain_sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

std::vector<float> plain_unit(const float* x, int64_t dim) {
  float sum = 0;
  for (int64_t i = 0; i < dim; ++i) sum += x[i] * x[i];
  std::vector<float> unit(x, x + dim);
  for (float& value : unit) value /= std::sqrt(sum + 1e-6f);
  return unit;
}

// The same recurrence in floats, plainly: its error is the yardstick for a fast kernel's.
void plain_delta_net(const DeltaNetArgs& args, const DeltaShape& s) {
  for (const Span& span : args.spans) {
    for (int64_t r = span.first_row; r < span.first_row + span.rows; ++r) {
      for (int64_t h = 0; h < s.value_heads; ++h) {
        const float* row = args.qkv.f32() + r * args.qkv.shape[1];
        const int64_t key_head = h / (s.value_heads / s.key_heads);
        const auto q = plain_unit(row + key_head * s.key_dim, s.key_dim);
        const auto k = plain_unit(row + (s.key_heads + key_head) * s.key_dim, s.key_dim);
        const float* v = row + 2 * s.key_heads * s.key_dim + h * s.value_dim;
        const float beta = plain_sigmoid(args.b.f32()[r * s.value_heads + h]);
        const float dt = args.a.f32()[r * s.value_heads + h] + args.dt_bias.f32()[h];
        const float alpha = std::exp(-args.rate.f32()[h] * std::log1p(std::exp(dt)));
        float* state =
            args.state.f32() + (span.state_slot * s.value_heads + h) * s.key_dim * s.value_dim;
        for (int64_t c = 0; c < s.value_dim; ++c) {
          float predicted = 0, result = 0;
          for (int64_t i = 0; i < s.key_dim; ++i)
            predicted += (state[i * s.value_dim + c] *= alpha) * k[size_t(i)];
          for (int64_t i = 0; i < s.key_dim; ++i)
            result += (state[i * s.value_dim + c] += k[size_t(i)] * beta * (v[c] - predicted)) *
                      q[size_t(i)];
          args.out.f32()[(r * s.value_heads + h) * s.value_dim + c] =
              result / std::sqrt(float(s.key_dim));
        }
      }
    }
  }
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (!std::isnan(b[i])) largest = std::max(largest, std::fabs(double(a[i]) - double(b[i])));
  return largest;
}

constexpr DeltaShape kDeltaShapes[] = {
    {1, 1, 1, 1},   {1, 1, 8, 16},  {2, 4, 16, 16},   {2, 6, 17, 5},
    {1, 2, 5, 100}, {1, 3, 64, 64}, {2, 4, 128, 128},
};

class DeltaNetEqual : public OpsTest {
 protected:
  // A chunked or reordered form may lose some bits more than the plain recurrence, not many.
  double allowed(std::span<const float> plain, std::span<const float> right) {
    double magnitude = 0;
    for (const float value : right)
      if (!std::isnan(value)) magnitude = std::max(magnitude, std::fabs(double(value)));
    return 8 * largest_difference(plain, right) + 4 * (exp_error() + 4 * kRoundoff) * magnitude;
  }

  // Rows in no span stay NaN; compare the others.
  void expect_rows(const Guarded& got, const Guarded& right, const Ragged& step,
                   double allowed_error, const std::string& what) {
    for (const Span& span : step.spans)
      expect_close(rows_of(got, span.first_row, span.rows),
                   rows_of(right, span.first_row, span.rows), 0, allowed_error, what);
  }
};

TEST_P(DeltaNetEqual, MatchesTheReference) {
  Rng rng(2);
  for (const Ragged& step : kRagged) {
    for (const DeltaShape& shape : kDeltaShapes) {
      const DeltaCase test(shape, step.rows, rng);
      const Guarded right_state = copy_of(test.state), plain_state = copy_of(test.state);
      const Guarded ours_state = copy_of(test.state);
      Guarded right(test.out_shape()), plain(test.out_shape()), ours(test.out_shape());
      ref().delta_net(test.args(right_state, right, step.spans));
      plain_delta_net(test.args(plain_state, plain, step.spans), shape);
      ops().delta_net(test.args(ours_state, ours, step.spans));
      const std::string what = cat("delta_net ", shape.value_heads, " heads of ", shape.key_dim,
                                   " x ", shape.value_dim, ", ", step.rows, " rows");
      expect_rows(ours, right, step, allowed(plain.values(), right.values()), what);
      expect_close(ours_state.values(), right_state.values(), 0,
                   allowed(plain_state.values(), right_state.values()), what + ", state");
    }
  }
}

TEST_P(DeltaNetEqual, FewRowsAreInvariant) {
  Rng rng(3);
  for (const Ragged& step : kRagged) {
    const auto too_long = [&](const Span& span) {
      return span.rows > tolerance().exact_delta_rows;
    };
    if (std::any_of(step.spans.begin(), step.spans.end(), too_long)) continue;
    for (const DeltaShape& shape : kDeltaShapes) {
      const DeltaCase test(shape, step.rows, rng);
      const Guarded together_state = copy_of(test.state), single_state = copy_of(test.state);
      Guarded together(test.out_shape()), single(test.out_shape());
      ops().delta_net(test.args(together_state, together, step.spans));
      for (const Span& span : step.spans) {
        for (int64_t t = 0; t < span.rows; ++t) {
          Span one = span;
          one.first_row += t;
          one.rows = 1;
          ops().delta_net(test.args(single_state, single, {&one, 1}));
        }
      }
      const std::string what =
          cat("delta_net of ", shape.key_dim, " x ", shape.value_dim, ", ", step.rows, " rows");
      expect_same_bits(together.values(), single.values(), what);
      expect_same_bits(together_state.values(), single_state.values(), what + ", state");
    }
  }
}

TEST_P(DeltaNetEqual, HostileGates) {
  Rng rng(4);
  const Ragged step{3, 1, 40};
  for (const double magnitude : {0.0, 30.0, 1000.0}) {
    DeltaCase test({2, 4, 16, 32}, step.rows, rng);
    for (float& value : test.a.values()) value *= float(magnitude);
    for (float& value : test.b.values()) value *= float(magnitude);
    for (float& value : rows_of(test.qkv, 0, 1)) value = 0;  // no length to normalise
    const Guarded right_state = copy_of(test.state), ours_state = copy_of(test.state);
    const Guarded plain_state = copy_of(test.state);
    Guarded right(test.out_shape()), ours(test.out_shape()), plain(test.out_shape());
    ref().delta_net(test.args(right_state, right, step.spans));
    // The plain softplus overflows for large gates; the yardstick is the one of tame gates.
    DeltaCase tame({2, 4, 16, 32}, step.rows, rng);
    const Guarded tame_state = copy_of(test.state), tame_right_state = copy_of(test.state);
    Guarded tame_right(test.out_shape());
    plain_delta_net(tame.args(tame_state, plain, step.spans), tame.shape);
    ref().delta_net(tame.args(tame_right_state, tame_right, step.spans));
    ops().delta_net(test.args(ours_state, ours, step.spans));
    expect_rows(ours, right, step, allowed(plain.values(), tame_right.values()),
                cat("gates of ", magnitude));
  }
}

SLIP_TEST_BACKENDS(DeltaNetEqual);

}  // namespace
}  // namespace slip
