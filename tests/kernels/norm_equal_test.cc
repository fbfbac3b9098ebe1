// Norms, activations, peaks, candidates, joined rows and the rope table of every backend against
// the reference.
#include <cmath>
#include <functional>
#include <limits>

#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

class NormEqual : public OpsTest {};

constexpr int64_t kDims[] = {1, 3, 8, 15, 16, 17, 64, 127, 384, 1025};
constexpr float kEps = 1e-6f;

// A sum of `dim` squares, its root, and three products.
double norm_error(int64_t dim) { return (double(dim) / 2 + 8) * kRoundoff; }

TEST_P(NormEqual, RmsNorm) {
  Rng rng(1);
  for (const int64_t dim : kDims) {
    const Guarded scale = random_tensor({dim}, rng);
    const Guarded x = random_tensor({kMostRows, dim}, rng);
    for (float& value : rows_of(x, 3, 1)) value = 0;
    for (float& value : rows_of(x, 4, 1)) value *= 1e-15f;
    rows_of(x, 5, 1)[size_t(dim / 2)] = 1e15f;
    Guarded right({kMostRows, dim});
    ref().rms_norm({.x = x, .scale = scale, .out = right, .eps = kEps});
    Guarded alone({kMostRows, dim});
    for (int64_t r = 0; r < kMostRows; ++r)
      ops().rms_norm({.x = x.view().slice(r, 1),
                      .scale = scale,
                      .out = alone.view().slice(r, 1),
                      .eps = kEps});
    expect_close(alone.values(), right.values(), norm_error(dim), kTiny, cat("rms_norm of ", dim));
    for (const int64_t rows : kRowCounts) {
      const Guarded in_place = copy_of(x.view().first(rows));
      ops().rms_norm({.x = in_place, .scale = scale, .out = in_place, .eps = kEps});
      expect_same_bits(in_place.values(), rows_of(alone, 0, rows),
                       cat("rms_norm of ", dim, " in place, ", rows, " rows"));
    }
  }
}

TEST_P(NormEqual, GatedRmsNorm) {
  Rng rng(2);
  for (const int64_t dim : {1, 7, 16, 33, 64, 128}) {
    for (const int64_t heads : {1, 3, 8}) {
      const Guarded scale = random_tensor({dim}, rng);
      const Guarded x = random_tensor({8, heads, dim}, rng);
      const Guarded gate = random_tensor({8, heads, dim}, rng, 10);
      Guarded right({8, heads, dim});
      ref().gated_rms_norm({.x = x, .gate = gate, .scale = scale, .out = right, .eps = kEps});
      Guarded alone({8, heads, dim});
      for (int64_t r = 0; r < 8; ++r)
        ops().gated_rms_norm({.x = x.view().slice(r, 1),
                              .gate = gate.view().slice(r, 1),
                              .scale = scale,
                              .out = alone.view().slice(r, 1),
                              .eps = kEps});
      expect_close(alone.values(), right.values(), norm_error(dim) + exp_error(), kTiny,
                   cat("gated_rms_norm, ", heads, " heads of ", dim));
      const Guarded in_place = copy_of(x);
      ops().gated_rms_norm(
          {.x = in_place, .gate = gate, .scale = scale, .out = in_place, .eps = kEps});
      expect_same_bits(in_place.values(), alone.values(), "gated_rms_norm in place, 8 rows");
    }
  }
}

// Ordinary values and the ends: e^-x overflows a float beyond 88.
Guarded gate_values(const Shape& shape, Rng& rng) {
  constexpr float kEnds[] = {0, -0.0f, 1e-30f, 20, -20, 87, -87, 89, -89, 104, -104, 1e4f, -1e4f};
  Guarded gate = random_tensor(shape, rng, 4);
  for (float& value : gate.values())
    if (rng.integer(0, 3) == 0) value = kEnds[rng.integer(0, 12)];
  return gate;
}

TEST_P(NormEqual, SiluMul) {
  Rng rng(3);
  for (const int64_t width : kDims) {
    const Guarded gate = gate_values({kMostRows, width}, rng);
    const Guarded up = random_tensor({kMostRows, width}, rng);
    Guarded right({kMostRows, width});
    ref().gated_mul({.gate = gate, .up = up, .out = right});
    Guarded alone({kMostRows, width});
    for (int64_t r = 0; r < kMostRows; ++r)
      ops().gated_mul({.gate = gate.view().slice(r, 1),
                       .up = up.view().slice(r, 1),
                       .out = alone.view().slice(r, 1)});
    // Far out on the negative side e^x is subnormal, times a gate of up to 1e4.
    expect_close(alone.values(), right.values(), exp_error() + 4 * kRoundoff, 1e4 * kTiny,
                 cat("gated_mul of ", width));
    for (const int64_t rows : kRowCounts) {
      const Guarded as_gate = copy_of(gate.view().first(rows));
      ops().gated_mul({.gate = as_gate, .up = up.view().first(rows), .out = as_gate});
      expect_same_bits(as_gate.values(), rows_of(alone, 0, rows), "gated_mul, out is gate");
      const Guarded as_up = copy_of(up.view().first(rows));
      ops().gated_mul({.gate = gate.view().first(rows), .up = as_up, .out = as_up});
      expect_same_bits(as_up.values(), rows_of(alone, 0, rows), "gated_mul, out is up");
    }
  }
}

TEST_P(NormEqual, GateHeads) {
  Rng rng(4);
  for (const int64_t dim : {1, 7, 16, 33, 64, 256}) {
    for (const int64_t heads : {1, 3, 8}) {
      const Guarded q_and_gate = gate_values({kMostRows, heads, 2 * dim}, rng);
      // The query half must not matter.
      for (int64_t h = 0; h < kMostRows * heads; ++h)
        for (int64_t i = 0; i < dim; ++i) q_and_gate.f32()[h * 2 * dim + i] = std::nanf("");
      const Guarded x = random_tensor({kMostRows, heads, dim}, rng);
      const Guarded right = copy_of(x);
      ref().gate_heads({.x = right, .q_and_gate = q_and_gate});
      const Guarded alone = copy_of(x);
      for (int64_t r = 0; r < kMostRows; ++r)
        ops().gate_heads(
            {.x = alone.view().slice(r, 1), .q_and_gate = q_and_gate.view().slice(r, 1)});
      expect_close(alone.values(), right.values(), exp_error() + 4 * kRoundoff, kTiny,
                   cat("gate_heads, ", heads, " heads of ", dim));
      for (const int64_t rows : kRowCounts) {
        const Guarded batch = copy_of(x.view().first(rows));
        ops().gate_heads({.x = batch, .q_and_gate = q_and_gate.view().first(rows)});
        expect_same_bits(batch.values(), rows_of(alone, 0, rows), cat("gate_heads, ", rows));
      }
    }
  }
}

TEST_P(NormEqual, RopeTable) {
  for (const int64_t pairs : {1, 4, 15, 32}) {
    Guarded frequencies({pairs});
    for (int64_t j = 0; j < pairs; ++j)
      frequencies.f32()[j] = float(std::pow(1e7, -double(j) / double(pairs)));
    // Row 2 belongs to nobody.
    const Span spans[] = {{.first_row = 0, .rows = 2, .start = 0, .pages = {}},
                          {.first_row = 3, .rows = 3, .start = 1000, .pages = {}},
                          {.first_row = 6, .rows = 1, .start = 200000, .pages = {}}};
    Guarded cos({7, pairs}), sin({7, pairs}), right_cos({7, pairs}), right_sin({7, pairs});
    for (const float scale : {1.0f, 1.25f}) {
      ref().rope_table({.frequencies = frequencies,
                        .scale = scale,
                        .cos = right_cos,
                        .sin = right_sin,
                        .spans = spans});
      ops().rope_table(
          {.frequencies = frequencies, .scale = scale, .cos = cos, .sin = sin, .spans = spans});
      for (const Span& span : spans) {
        for (int64_t t = 0; t < span.rows; ++t) {
          // The product of position and frequency may be a float.
          std::vector<double> allowed;
          for (const float frequency : frequencies.values())
            allowed.push_back(scale * kRoundoff * (double(span.start + t) * frequency + 4));
          const int64_t row = span.first_row + t;
          expect_within(rows_of(cos, row, 1), rows_of(right_cos, row, 1), allowed, "cos");
          expect_within(rows_of(sin, row, 1), rows_of(right_sin, row, 1), allowed, "sin");
        }
      }
    }
  }
}

TEST_P(NormEqual, Join) {
  Rng rng(5);
  for (const int64_t left : kDims) {
    for (const int64_t right : {1, 16, 33}) {
      for (const int64_t rows : kRowCounts) {
        const Guarded a = random_tensor({rows, left}, rng), b = random_tensor({rows, right}, rng);
        Guarded expected({rows, left + right}), ours({rows, left + right});
        ref().join({.a = a, .b = b, .out = expected});
        ops().join({.a = a, .b = b, .out = ours});
        expect_same_bits(ours.values(), expected.values(),
                         cat("join of ", left, " and ", right, ", ", rows, " rows"));
      }
    }
  }
}

// Equal values, at the ends and across whatever parts a backend takes a row in.
TEST_P(NormEqual, Peaks) {
  Rng rng(6);
  for (const int64_t width : {2, 3, 8, 17, 64, 1025, 4096, 248320}) {
    for (const int64_t rows : {1, 3, 7}) {
      const Guarded x = random_tensor({rows, width}, rng);
      rows_of(x, 0, 1).front() = rows_of(x, 0, 1).back() = 100;
      if (rows > 1)
        for (float& value : rows_of(x, 1, 1)) value = -3e38f;
      if (rows > 2)
        for (float& value : rows_of(x, 2, 1)) value = -std::numeric_limits<float>::infinity();
      if (rows > 3) rows_of(x, 3, 1).back() = 100;
      if (rows > 4)
        for (float& value : rows_of(x, 4, 1)) value = float(rng.integer(-3, 3));
      Guarded right({rows, 3}, DType::i32), ours({rows, 3}, DType::i32);
      ref().peaks({.x = x, .out = right});
      ops().peaks({.x = x, .out = ours});
      for (int64_t i = 0; i < rows * 3; ++i)
        EXPECT_EQ(ours.i32()[i], right.i32()[i])
            << "peaks of " << width << ", row " << i / 3 << ", value " << i % 3;
    }
  }
}

// Of columns that stand for tokens; and once more where later operations find them.
TEST_P(NormEqual, PeaksOfTokens) {
  Rng rng(8);
  for (const int64_t width : {2, 33, 5000}) {
    const Guarded x = random_tensor({3, width}, rng);
    Guarded tokens({width}, DType::i32);
    for (int64_t i = 0; i < width; ++i) tokens.i32()[i] = int32_t(7 + 3 * i);
    Guarded right({3, 3}, DType::i32), ours({3, 3}, DType::i32);
    Guarded right_ids({3}, DType::i32), our_ids({3}, DType::i32);
    Guarded columns({3, 3}, DType::i32);
    ref().peaks({.x = x, .out = columns});
    ref().peaks({.x = x, .out = right, .tokens = tokens, .ids = right_ids});
    ops().peaks({.x = x, .out = ours, .tokens = tokens, .ids = our_ids});
    for (int64_t row = 0; row < 3; ++row) {
      EXPECT_EQ(right.i32()[3 * row], 7 + 3 * columns.i32()[3 * row]);
      EXPECT_EQ(ours.i32()[3 * row], right.i32()[3 * row]);
      EXPECT_EQ(right_ids.i32()[row], right.i32()[3 * row]);
      EXPECT_EQ(our_ids.i32()[row], right_ids.i32()[row]);
    }
  }
}

// A damaged model's logits are no numbers, all of them or some; those are never the largest.
TEST_P(NormEqual, PeaksOfWhatIsNoNumber) {
  Rng rng(7);
  const float no_number = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t width : {3, 17, 300, 5000}) {
    const Guarded x = random_tensor({3, width}, rng);
    for (float& value : rows_of(x, 0, 1)) value = no_number;
    for (int64_t i = 0; i < width; i += 2) rows_of(x, 1, 1)[size_t(i)] = no_number;
    rows_of(x, 2, 1).front() = no_number;
    Guarded right({3, 3}, DType::i32), ours({3, 3}, DType::i32);
    ref().peaks({.x = x, .out = right});
    ops().peaks({.x = x, .out = ours});
    for (int64_t i = 0; i < 9; ++i)
      EXPECT_EQ(ours.i32()[i], right.i32()[i]) << "of " << width << ", row " << i / 3;
    EXPECT_EQ(right.i32()[0], 0);
  }
}

class CandidatesEqual : public OpsTest {
 protected:
  void expect_equal(const Guarded& x) {
    const Shape shape{x.view().shape[0], kCandidates, 2};
    Guarded right(shape, DType::i32), ours(shape, DType::i32);
    ref().candidates({.x = x, .out = right});
    ops().candidates({.x = x, .out = ours});
    for (int64_t i = 0; i < shape.count(); ++i)
      ASSERT_EQ(ours.i32()[i], right.i32()[i])
          << "of " << x.view().shape[1] << ", row " << i / (2 * kCandidates) << ", place "
          << i / 2 % kCandidates;
  }

  // A row for each of these, which say what lies where.
  using Values = std::vector<std::function<float(int64_t)>>;
  void expect_equal(int64_t width, const Values& rows) {
    const Guarded x({int64_t(rows.size()), width});
    for (size_t row = 0; row < rows.size(); ++row)
      for (int64_t i = 0; i < width; ++i) rows_of(x, int64_t(row), 1)[size_t(i)] = rows[row](i);
    expect_equal(x);
  }
};

// Rows of fewer values than there are candidates, and equal values, in and across whatever parts a
// backend takes a row in.
TEST_P(CandidatesEqual, OfAnyWidth) {
  Rng rng(8);
  for (const int64_t width : {1, 2, 127, 128, 129, 1025, 8191, 8192, 8193, 40001, 248320, 262144})
    expect_equal(
        width,
        {[&](int64_t) { return float(rng.normal()); }, [&](int64_t) { return 0.5f; },
         [&](int64_t) { return float(rng.integer(-3, 3)); },
         [&](int64_t) { return float(rng.integer(-100000, 100000)); },
         [&](int64_t i) { return float(i); }, [&](int64_t i) { return -float(i); },
         [&](int64_t i) { return i % 2 == 0 ? 0.0f : -0.0f; },
         [&](int64_t i) { return i < width / 2 ? 1.0f : 1.0f + 0x1p-23f * float(i % 2); },
         [&](int64_t i) { return i + 100 < width ? -1e-45f : 1e-45f * float(rng.integer(1, 9)); }});
}

TEST_P(CandidatesEqual, OfWhatIsNoNumber) {
  Rng rng(9);
  const float infinity = std::numeric_limits<float>::infinity();
  const float no_number = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t width : {3, 300, 20000})
    expect_equal(width, {[&](int64_t) { return -infinity; }, [&](int64_t) { return no_number; },
                         [&](int64_t i) { return i % 3 == 0 ? no_number : float(rng.normal()); },
                         [&](int64_t i) { return i % 200 == 7 ? infinity : -infinity; },
                         [&](int64_t i) { return i % 200 == 1 ? -3.0f : no_number; }});
}

// More than a backend may take at once.
TEST_P(CandidatesEqual, OfManyRows) {
  Rng rng(10);
  const Guarded x({67, 262144});
  for (float& value : x.values()) value = float(rng.uniform(-10, 10));
  expect_equal(x);
}

SLIP_TEST_BACKENDS(NormEqual);
SLIP_TEST_BACKENDS(CandidatesEqual);

}  // namespace
}  // namespace slip
