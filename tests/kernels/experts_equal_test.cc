// route, gated_mlp and experts of every backend against the reference, and the fused ops against
// their composition.
#include <cmath>
#include <limits>
#include <optional>

#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

struct TestMlp {
  TestWeight gate, up, down;
  GatedMlp plain() const { return {gate.plain, up.plain, down.plain}; }
  GatedMlp packed() const { return {gate.packed, up.packed, down.packed}; }
};

struct MlpShape {
  WeightFormat format;
  int64_t hidden, width;
  int group;            // of gate and up
  int down_group = -1;  // where it is another
};

TestMlp make_mlp(Ops& ops, const MlpShape& shape, Rng& rng) {
  const auto make = [&](int64_t out, int64_t in, int group) {
    return make_weight(ops, {shape.format, out, in, group}, Fill::random, rng);
  };
  return {make(shape.width, shape.hidden, shape.group),
          make(shape.width, shape.hidden, shape.group),
          make(shape.hidden, shape.width, shape.down_group < 0 ? shape.group : shape.down_group)};
}

constexpr MlpShape kShapes[] = {
    {WeightFormat::f32, 33, 17, 0},
    {WeightFormat::bf16, 64, 48, 0},
    {WeightFormat::fp8_block, 128, 96, 128},
    {WeightFormat::int8_row, 96, 40, 0},
    {WeightFormat::int4_group, 256, 128, 128},
    {WeightFormat::int4_group, 64, 32, 32},
    {WeightFormat::int4_group, 256, 192, 128, 64},  // one and a half slabs
};

std::string describe(const MlpShape& shape) {
  return cat(name_of(shape.format), ", hidden ", shape.hidden, ", width ", shape.width);
}

struct ExpertsCase;

class ExpertsEqual : public OpsTest {
 protected:
  // The error that an MLP's output may have: each stage's bound, carried through the next.
  std::vector<double> mlp_bound(const TestMlp& mlp, std::span<const float> x,
                                Activation activation = Activation::silu) {
    const int64_t width = mlp.gate.plain.info.out;
    const View row{reinterpret_cast<std::byte*>(const_cast<float*>(x.data())),
                   DType::f32,
                   {1, int64_t(x.size())}};
    Guarded gate({1, width}), up({1, width}), mixed({1, width});
    ref().linear({.x = row, .weight = mlp.gate.plain, .out = gate});
    ref().linear({.x = row, .weight = mlp.up.plain, .out = up});
    ref().gated_mul({.gate = gate, .up = up, .out = mixed, .activation = activation});
    // Where a negative gate meets a tanh near -1, their difference is what remains of GELU.
    const bool gelu = activation == Activation::gelu_tanh;
    const double relative = gelu ? 8 * exp_error() : exp_error() + 4 * kRoundoff;
    const double absolute = gelu ? 64 * kRoundoff : 0;
    const std::vector<double> gate_error = linear_bound(mlp.gate, x, tolerance());
    const std::vector<double> up_error = linear_bound(mlp.up, x, tolerance());
    std::vector<double> error;
    for (size_t i = 0; i < size_t(width); ++i) {
      constexpr double kSteepest = 1.13;  // GELU; SiLU has 1.1
      const double g = std::fabs(double(gate.values()[i])), u = std::fabs(double(up.values()[i]));
      error.push_back(kSteepest * gate_error[i] * (u + up_error[i]) + g * up_error[i] +
                      (relative * (g + gate_error[i]) + absolute) * (u + up_error[i]));
    }
    return linear_bound(mlp.down, mixed.values(), tolerance(), error);
  }

  // The same for the first rows of a case: [rows, hidden].
  std::vector<double> experts_bound(const ExpertsCase& test, int64_t rows);
};

TEST_P(ExpertsEqual, GatedMlp) {
  Rng rng(1);
  for (const MlpShape& shape : kShapes) {
    const TestMlp test = make_mlp(ops(), shape, rng);
    const GatedMlp plain = test.plain(), packed = test.packed();
    const Guarded x = random_tensor({kMostRows, shape.hidden}, rng);
    const Guarded base = random_tensor({kMostRows, shape.hidden}, rng);
    const Guarded scratch({2, kMostRows, shape.width});
    const Guarded right = copy_of(base);
    ref().gated_mlp({.x = x, .mlp = plain, .scratch = scratch, .out = right, .add = true});
    const Guarded composed = copy_of(base);
    ops().Ops::gated_mlp({.x = x, .mlp = packed, .scratch = scratch, .out = composed, .add = true});
    std::vector<double> allowed;
    for (int64_t r = 0; r < kMostRows; ++r)
      for (const double bound : mlp_bound(test, rows_of(x, r, 1)))
        allowed.push_back(bound + 8 * kRoundoff);
    for (const int64_t rows : kRowCounts) {
      const Guarded ours = copy_of(base.view().first(rows));
      ops().gated_mlp(
          {.x = x.view().first(rows), .mlp = packed, .scratch = scratch, .out = ours, .add = true});
      const std::string what = cat("gated_mlp, ", describe(shape), ", ", rows, " rows");
      const auto bounds = std::span(allowed).first(size_t(rows * shape.hidden));
      expect_within(ours.values(), rows_of(right, 0, rows), bounds, what);
      if (tolerance().fused_is_exact) {
        expect_same_bits(ours.values(), rows_of(composed, 0, rows), what + " against composition");
      } else {
        expect_within(ours.values(), rows_of(composed, 0, rows), bounds, what + " composed");
      }
    }
  }
}

// A block of experts and a step to run through them.
struct ExpertsCase {
  std::vector<TestMlp> tests;
  std::vector<GatedMlp> plain, packed;
  TestMlp shared_test;
  GatedMlp shared_plain, shared_packed;
  Guarded x, weights, shared_gate, base;
  Guarded ids;
  Guarded scratch;
  Activation activation = Activation::silu;
  bool add = true;

  ExpertsArgs args(int64_t first, int64_t rows, bool is_plain, const View& out) const {
    return {.x = x.view().slice(first, rows),
            .ids = ids.view().slice(first, rows),
            .weights = weights.view().slice(first, rows),
            .experts = is_plain ? plain : packed,
            .shared = is_plain ? shared_plain : shared_packed,
            .shared_gate = shared_gate.view().slice(first, rows),
            .scratch = scratch,
            .out = out,
            .activation = activation,
            .add = add};
  }
};

ExpertsCase make_case(Ops& ops, const MlpShape& shape, int64_t experts, int64_t top_k,
                      std::optional<WeightFormat> shared, Rng& rng) {
  const int64_t shared_width = shape.width * 2;
  ExpertsCase made{.tests = {},
                   .plain = {},
                   .packed = {},
                   .shared_test = {},
                   .shared_plain = {},
                   .shared_packed = {},
                   .x = random_tensor({kMostRows, shape.hidden}, rng),
                   .weights = random_tensor({kMostRows, top_k}, rng),
                   .shared_gate = random_tensor({kMostRows, 1}, rng, 3),
                   .base = random_tensor({kMostRows, shape.hidden}, rng),
                   .ids = Guarded({kMostRows, top_k}, DType::i32),
                   .scratch = Guarded({experts_scratch_values(kMostRows, top_k, shape.width,
                                                              shared_width, shape.hidden)})};
  for (int64_t e = 0; e < experts; ++e) {
    made.tests.push_back(make_mlp(ops, shape, rng));
    made.plain.push_back(made.tests.back().plain());
    made.packed.push_back(made.tests.back().packed());
  }
  if (shared) {
    // Another format and width than the routed ones, as in the published files.
    const int group = *shared == WeightFormat::fp8_block ? kFp8Block : 0;
    made.shared_test = make_mlp(ops, {*shared, shape.hidden, shared_width, group}, rng);
    made.shared_plain = made.shared_test.plain();
    made.shared_packed = made.shared_test.packed();
  }
  for (int64_t r = 0; r < kMostRows; ++r) {
    // Distinct experts; row 1 repeats row 0's, so that rows share experts.
    const int64_t start = r == 1 ? made.ids.i32()[0] : rng.integer(0, experts - 1);
    for (int64_t k = 0; k < top_k; ++k)
      made.ids.i32()[r * top_k + k] = int32_t((start + k * 3) % experts);
  }
  return made;
}

std::vector<double> ExpertsEqual::experts_bound(const ExpertsCase& test, int64_t rows) {
  const int64_t top_k = test.ids.view().shape[1];
  std::vector<double> allowed;
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<double> of_row(rows_of(test.base, r, 1).size(), 0.0);
    const auto add_bound = [&](const TestMlp& mlp, double weight) {
      const std::vector<double> bound = mlp_bound(mlp, rows_of(test.x, r, 1), test.activation);
      // Each product and sum rounds; outputs are of the order of one.
      for (size_t i = 0; i < of_row.size(); ++i)
        of_row[i] += std::fabs(weight) * bound[i] + (exp_error() + 8 * kRoundoff) * 4;
    };
    for (int64_t k = 0; k < top_k; ++k)
      add_bound(test.tests[size_t(test.ids.i32()[r * top_k + k])],
                test.weights.f32()[r * top_k + k]);
    if (!test.shared_plain.gate.empty()) add_bound(test.shared_test, 1);
    allowed.insert(allowed.end(), of_row.begin(), of_row.end());
  }
  return allowed;
}

TEST_P(ExpertsEqual, Experts) {
  Rng rng(2);
  for (const MlpShape& shape : kShapes) {
    for (const std::optional<WeightFormat> shared :
         {std::optional(WeightFormat::fp8_block), std::optional<WeightFormat>()}) {
      constexpr int64_t kExperts = 8, kTopK = 2;
      const ExpertsCase test = make_case(ops(), shape, kExperts, kTopK, shared, rng);
      const Guarded right = copy_of(test.base);
      ref().experts(test.args(0, kMostRows, true, right));
      const Guarded composed = copy_of(test.base);
      ops().Ops::experts(test.args(0, kMostRows, false, composed));
      const Guarded alone = copy_of(test.base);
      for (int64_t r = 0; r < kMostRows; ++r)
        ops().experts(test.args(r, 1, false, alone.view().slice(r, 1)));

      const std::vector<double> allowed = experts_bound(test, kMostRows);
      const std::string what = cat("experts, ", describe(shape), shared ? ", shared" : "");
      expect_within(alone.values(), right.values(), allowed, what);
      if (tolerance().fused_is_exact) {
        expect_same_bits(alone.values(), composed.values(), what + " against composition");
      } else {
        expect_within(alone.values(), composed.values(), allowed, what + " composed");
      }
      for (const int64_t rows : kRowCounts) {
        const int64_t first = (kMostRows - rows) / 3;
        const Guarded batch = copy_of(test.base.view().slice(first, rows));
        ops().experts(test.args(first, rows, false, batch));
        if (rows <= tolerance().invariant_rows) {
          expect_same_bits(batch.values(), rows_of(alone, first, rows),
                           cat(what, ", ", rows, " rows against one by one"));
        } else {
          expect_within(
              batch.values(), rows_of(right, first, rows),
              std::span(allowed).subspan(size_t(first * shape.hidden), batch.values().size()),
              cat(what, ", ", rows, " rows"));
        }
      }
      if (HasFailure()) return;
    }
  }
}

// As many per row as large models have, beside a shared one of every format that files keep it in.
TEST_P(ExpertsEqual, ManyExperts) {
  Rng rng(4);
  constexpr int64_t kExperts = 25, kTopK = 8;
  for (const MlpShape& shape : {MlpShape{WeightFormat::int4_group, 256, 128, 128},
                                {WeightFormat::int4_group, 640, 384, 128},
                                {WeightFormat::fp8_block, 256, 128, 128},
                                {WeightFormat::bf16, 256, 128, 0},
                                MlpShape{WeightFormat::int8_row, 128, 96, 0},
                                {WeightFormat::bf16, 64, 48, 0}}) {
    for (const WeightFormat shared :
         {WeightFormat::fp8_block, WeightFormat::bf16, WeightFormat::int8_row}) {
      const ExpertsCase test = make_case(ops(), shape, kExperts, kTopK, shared, rng);
      const Guarded many = copy_of(test.base.view().first(16));
      ops().experts(test.args(0, 16, false, many));
      for (const int64_t rows : {1, 3, 4, 8, 16, 17}) {
        const Guarded right = copy_of(test.base.view().first(rows)), ours = copy_of(right);
        ref().experts(test.args(0, rows, true, right));
        ops().experts(test.args(0, rows, false, ours));
        const std::string what =
            cat("experts, ", describe(shape), ", shared ", name_of(shared), ", ", rows, " rows");
        expect_within(ours.values(), right.values(), experts_bound(test, rows), what);
        if (tolerance().invariant_rows >= 16 && rows <= 16)
          expect_same_bits(ours.values(), rows_of(many, 0, rows), what + " against 16");
      }
    }
  }
}

// Experts of so many bf16 that a backend may keep them in another way than small ones, and a shared
// one of them beside others.
TEST_P(ExpertsEqual, LargeFloats) {
  Rng rng(10);
  for (const MlpShape& shape :
       {MlpShape{WeightFormat::bf16, 512, 520, 0}, {WeightFormat::int4_group, 512, 256, 128}}) {
    const ExpertsCase test = make_case(ops(), shape, 4, 2, WeightFormat::bf16, rng);
    const Guarded many = copy_of(test.base.view().first(8));
    ops().experts(test.args(0, 8, false, many));
    for (const int64_t rows : {1, 3, 8, 17}) {
      const Guarded right = copy_of(test.base.view().first(rows)), ours = copy_of(right);
      ref().experts(test.args(0, rows, true, right));
      ops().experts(test.args(0, rows, false, ours));
      const std::string what = cat("experts, ", describe(shape), ", ", rows, " rows");
      expect_within(ours.values(), right.values(), experts_bound(test, rows), what);
      if (tolerance().invariant_rows >= 8 && rows <= 8)
        expect_same_bits(ours.values(), rows_of(many, 0, rows), what + " against 8");
    }
  }
}

// Experts of two formats: steps run one kind, the other, or both, and a row may not tell.
TEST_P(ExpertsEqual, FormatsThatDiffer) {
  Rng rng(9);
  constexpr int64_t kRows = 5, kTopK = 2;
  constexpr int32_t kIds[kRows][kTopK] = {{0, 2}, {1, 3}, {4, 1}, {5, 0}, {2, 4}};
  for (const WeightFormat other : {WeightFormat::bf16, WeightFormat::int8_row}) {
    ExpertsCase test =
        make_case(ops(), {WeightFormat::int4_group, 256, 128, 128}, 6, kTopK, std::nullopt, rng);
    for (size_t e = 1; e < test.tests.size(); e += 2) {
      test.tests[e] = make_mlp(ops(), {other, 256, 128, 0}, rng);
      test.plain[e] = test.tests[e].plain();
      test.packed[e] = test.tests[e].packed();
    }
    std::memcpy(test.ids.i32(), kIds, sizeof(kIds));
    const Guarded right = copy_of(test.base.view().first(kRows)), all = copy_of(right);
    const Guarded alone = copy_of(right);
    ref().experts(test.args(0, kRows, true, right));
    ops().experts(test.args(0, kRows, false, all));
    for (int64_t r = 0; r < kRows; ++r)
      ops().experts(test.args(r, 1, false, alone.view().slice(r, 1)));
    const std::string what = cat("experts, int4 and ", name_of(other));
    expect_within(all.values(), right.values(), experts_bound(test, kRows), what);
    expect_same_bits(alone.values(), all.values(), what + ", row by row");
  }
}

// With GELU, and over what was there: that is NaN, and must not matter.
TEST_P(ExpertsEqual, GeluThatReplaces) {
  Rng rng(6);
  constexpr MlpShape kShape{WeightFormat::bf16, 33, 48, 0};
  constexpr int64_t kRows = 17;
  ExpertsCase test = make_case(ops(), kShape, 8, 3, std::nullopt, rng);
  test.activation = Activation::gelu_tanh;
  test.add = false;
  const auto mlp = [&](Ops& on, const GatedMlp& of, const View& out) {
    on.gated_mlp({.x = test.x.view().first(kRows),
                  .mlp = of,
                  .scratch = test.scratch,
                  .out = out,
                  .activation = test.activation,
                  .add = false});
  };
  Guarded right({kRows, kShape.hidden}), ours({kRows, kShape.hidden});
  mlp(ref(), test.plain[0], right);
  mlp(ops(), test.packed[0], ours);
  std::vector<double> allowed;
  for (int64_t r = 0; r < kRows; ++r)
    for (const double bound : mlp_bound(test.tests[0], rows_of(test.x, r, 1), test.activation))
      allowed.push_back(bound);
  expect_within(ours.values(), right.values(), allowed, "gated_mlp");

  Guarded right_experts({kRows, kShape.hidden}), all({kRows, kShape.hidden});
  Guarded alone({kRows, kShape.hidden});
  ref().experts(test.args(0, kRows, true, right_experts));
  ops().experts(test.args(0, kRows, false, all));
  for (int64_t r = 0; r < kRows; ++r)
    ops().experts(test.args(r, 1, false, alone.view().slice(r, 1)));
  expect_within(all.values(), right_experts.values(), experts_bound(test, kRows), "experts");
  if (tolerance().invariant_rows >= kRows)
    expect_same_bits(alone.values(), all.values(), "experts, row by row");
}

TEST_P(ExpertsEqual, Route) {
  Rng rng(3);
  for (const int64_t experts : {1, 4, 7, 16, 17, 128, 256, 600, 2048}) {
    for (const int64_t top_k : {1, 2, 4, 8, 32}) {
      const bool clusters = experts > 512;  // of a head
      if (top_k > experts || clusters != (top_k == 32)) continue;
      Guarded logits = random_tensor({kMostRows, experts}, rng, 3);
      for (float& value : rows_of(logits, 1, 1)) value = 2.5f;  // all equal
      for (float& value : rows_of(logits, 2, 1)) value = float(rng.integer(0, 2));
      for (float& value : rows_of(logits, 3, 1)) value *= 1e4f;
      for (float& value : rows_of(logits, 4, 1)) value = -3e38f;
      for (float& value : rows_of(logits, 5, 1)) value *= 1e-6f;  // softmax almost flat
      for (float& value : rows_of(logits, 6, 1))  // neighbouring floats: the order of logits counts
        value = std::nextafter(20.0f, rng.integer(0, 1) ? 100.0f : 0.0f);
      for (float& value : rows_of(logits, 7, 1)) value = 0;
      if (experts > 1)
        rows_of(logits, 7, 1)[size_t(experts - 1)] = -std::numeric_limits<float>::infinity();

      Guarded right_ids({kMostRows, top_k}, DType::i32), ids({kMostRows, top_k}, DType::i32);
      Guarded right({kMostRows, top_k}), alone({kMostRows, top_k});
      ref().route({.logits = logits, .ids = right_ids, .weights = right});
      for (int64_t r = 0; r < kMostRows; ++r)
        ops().route({.logits = logits.view().slice(r, 1),
                     .ids = ids.view().slice(r, 1),
                     .weights = alone.view().slice(r, 1)});
      for (int64_t i = 0; i < kMostRows * top_k; ++i)
        ASSERT_EQ(ids.i32()[i], right_ids.i32()[i])
            << experts << " experts, row " << i / top_k << ", rank " << i % top_k;
      expect_close(alone.values(), right.values(), 2 * exp_error() + 16 * kRoundoff, kTiny,
                   cat("route, top ", top_k, " of ", experts));
      for (const int64_t rows : kRowCounts) {
        Guarded batch_ids({rows, top_k}, DType::i32), batch({rows, top_k});
        ops().route({.logits = logits.view().first(rows), .ids = batch_ids, .weights = batch});
        expect_same_bits(batch.values(), rows_of(alone, 0, rows), "route, batch");
        for (int64_t i = 0; i < rows * top_k; ++i)
          ASSERT_EQ(batch_ids.i32()[i], right_ids.i32()[i]);
      }
    }
  }
}

// Chosen and run in one: to the bit as one after the other, and the choice is left behind.
TEST_P(ExpertsEqual, RoutedExperts) {
  Rng rng(7);
  constexpr MlpShape kShape{WeightFormat::int4_group, 256, 128, 128};
  for (const auto& [experts, top_k] : {std::pair{5, 4}, {24, 8}, {132, 4}, {260, 8}}) {
    const ExpertsCase test = make_case(ops(), kShape, experts, top_k, WeightFormat::fp8_block, rng);
    Guarded logits = random_tensor({kMostRows, experts}, rng, 3);
    for (float& value : rows_of(logits, 1, 1)) value = 2.5f;  // all equal
    for (float& value : rows_of(logits, 2, 1)) value = float(rng.integer(0, 2));
    const Guarded scales = random_tensor({experts}, rng);
    for (const int64_t rows : {1, 2, 3, 4, 5, 8, 16, 17}) {
      for (const bool scaled : {false, true}) {
        Guarded right_ids({rows, top_k}, DType::i32), ids({rows, top_k}, DType::i32);
        Guarded right_weights({rows, top_k}), weights({rows, top_k});
        const auto args = [&](const Guarded& its_ids, const Guarded& its_weights, const View& out) {
          RoutedExpertsArgs made{.logits = logits.view().first(rows),
                                 .experts = test.args(0, rows, false, out),
                                 .scales = scaled ? scales.view() : View{}};
          made.experts.ids = its_ids;
          made.experts.weights = its_weights;
          return made;
        };
        const Guarded right = copy_of(test.base.view().first(rows)), ours = copy_of(right);
        ops().Ops::routed_experts(args(right_ids, right_weights, right));
        ops().routed_experts(args(ids, weights, ours));
        const std::string what = cat("top ", top_k, " of ", experts, ", ", rows, " rows");
        for (int64_t i = 0; i < rows * top_k; ++i)
          ASSERT_EQ(ids.i32()[i], right_ids.i32()[i]) << what << ", pair " << i;
        expect_same_bits(weights.values(), right_weights.values(), what + ", weights");
        expect_same_bits(ours.values(), right.values(), what);
      }
    }
  }
}

// A dense MLP beside experts: each as alone, but for what a backend may sum otherwise, and a row's
// bits do not depend on others.
TEST_P(ExpertsEqual, MlpAndExperts) {
  Rng rng(8);
  constexpr int64_t kTopK = 4, kExperts = 24, kHidden = 256;
  for (const auto& [shape, dense_shape] :
       {std::pair{MlpShape{WeightFormat::int4_group, kHidden, 192, 128, 64},
                  MlpShape{WeightFormat::int4_group, kHidden, 320, 128, 64}},
        std::pair{MlpShape{WeightFormat::int4_group, kHidden, 128, 128},
                  MlpShape{WeightFormat::bf16, kHidden, 128, 0}}}) {
    ExpertsCase test = make_case(ops(), shape, kExperts, kTopK, std::nullopt, rng);
    test.activation = Activation::gelu_tanh;
    test.add = false;
    const TestMlp dense = make_mlp(ops(), dense_shape, rng);
    const GatedMlp packed = dense.packed();
    const Guarded x = random_tensor({kMostRows, kHidden}, rng);
    const Guarded logits = random_tensor({kMostRows, kExperts}, rng, 3);
    const Guarded scales = random_tensor({kExperts}, rng);
    struct Outputs {
      Guarded mlp, experts, ids, weights;
      explicit Outputs(int64_t rows)
          : mlp({rows, kHidden}),
            experts({rows, kHidden}),
            ids({rows, kTopK}, DType::i32),
            weights({rows, kTopK}) {}
    };
    const auto args = [&](int64_t first, int64_t rows, const Outputs& to) {
      MlpAndExpertsArgs made{.mlp = {.x = x.view().slice(first, rows),
                                     .mlp = packed,
                                     .scratch = test.scratch,
                                     .out = to.mlp,
                                     .activation = test.activation,
                                     .add = false},
                             .experts = {.logits = logits.view().slice(first, rows),
                                         .experts = test.args(first, rows, false, to.experts),
                                         .scales = scales}};
      made.experts.experts.ids = to.ids;
      made.experts.experts.weights = to.weights;
      return made;
    };
    std::vector<double> allowed;
    for (int64_t r = 0; r < kMostRows; ++r)
      for (const double bound : mlp_bound(dense, rows_of(x, r, 1), test.activation))
        allowed.push_back(2 * bound + 8 * kRoundoff);
    for (const int64_t rows : {1, 2, 3, 5, 16, 17}) {
      const Outputs ours(rows), parts(rows);
      ops().mlp_and_experts(args(0, rows, ours));
      ops().Ops::mlp_and_experts(args(0, rows, parts));
      const std::string what =
          cat(describe(shape), " beside ", describe(dense_shape), ", ", rows, " rows");
      expect_same_bits(ours.experts.values(), parts.experts.values(), what + ", experts");
      expect_same_bits(ours.weights.values(), parts.weights.values(), what + ", weights");
      expect_within(ours.mlp.values(), parts.mlp.values(),
                    std::span(allowed).first(size_t(rows * kHidden)), what + ", mlp");
      if (rows > tolerance().invariant_rows) continue;
      for (int64_t r = 0; r < rows; ++r) {
        const Outputs alone(1);
        ops().mlp_and_experts(args(r, 1, alone));
        expect_same_bits(rows_of(ours.mlp, r, 1), alone.mlp.values(), what + ", a row of mlp");
        expect_same_bits(rows_of(ours.experts, r, 1), alone.experts.values(), what + ", a row");
      }
    }
  }
}

SLIP_TEST_BACKENDS(ExpertsEqual);

}  // namespace
}  // namespace slip
