// linear and gated_mlp of every backend with inputs as wide as dense models have them, which a
// backend may divide: against the reference, and bit for bit with any rows beside them.
#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

constexpr int64_t kWideRows[] = {1, 2, 3, 5, 8, 9, 16};
constexpr int64_t kMostWideRows = 16;

// What CUDA divides, and by how much, depends on the inputs in slabs of 128: just not and just
// divided, not whole slabs, and the widths of models of 27 and 31 billion weights.
std::vector<WeightInfo> wide_cases() {
  std::vector<WeightInfo> cases;
  for (const int64_t in : {8192, 8320, 17408, 21504})
    cases.push_back({WeightFormat::int4_group, 33, in, 128});
  cases.push_back({WeightFormat::int4_group, 64, 9280, 64});
  cases.push_back({WeightFormat::int4_group, 17, 8224, 32});
  cases.push_back({WeightFormat::int8_row, 40, 8193, 0});
  cases.push_back({WeightFormat::fp8_block, 130, 12301, kFp8Block});
  cases.push_back({WeightFormat::bf16, 5, 10240, 0});
  return cases;
}

class WideEqual : public OpsTest {
 protected:
  // out (+)= W x for the rows at hand; what is not added to is poisoned.
  Guarded run(const Weight& weight, const View& x, const View& base) {
    Guarded out = base.empty() ? Guarded({x.shape[0], weight.info.out}) : copy_of(base);
    ops().linear({.x = x, .weight = weight, .out = out, .add = !base.empty()});
    return out;
  }

  // Row by row, and then as many at once as steps have.
  void expect_invariant_linear(const TestWeight& weight, const View& x, const View& base) {
    const int64_t out = weight.plain.info.out;
    Guarded alone({kMostWideRows, out});
    for (int64_t r = 0; r < kMostWideRows; ++r) {
      const View one = base.empty() ? View{} : base.slice(r, 1);
      const Guarded row = run(weight.packed, x.slice(r, 1), one);
      std::memcpy(rows_of(alone, r, 1).data(), row.f32(), row.view().bytes());
    }
    for (const int64_t rows : kWideRows) {
      const int64_t first = (kMostWideRows - rows) / 2;
      const View some = base.empty() ? View{} : base.slice(first, rows);
      const Guarded batch = run(weight.packed, x.slice(first, rows), some);
      expect_same_bits(batch.values(), rows_of(alone, first, rows),
                       cat(describe(weight.plain.info), base.empty() ? ", " : ", added, ", rows,
                           " rows from ", first));
    }
  }
};

TEST_P(WideEqual, IntegersAreExact) {
  Rng rng(1);
  for (const WeightInfo& info : wide_cases()) {
    const TestWeight weight = make_weight(ops(), info, Fill::integers, rng);
    const Guarded x = exact_inputs(info, kMostWideRows, tolerance(), rng);
    const Guarded base = integer_tensor({kMostWideRows, info.out}, rng, 100);
    const Guarded plain({kMostWideRows, info.out}), added = copy_of(base);
    ref().linear({.x = x, .weight = weight.plain, .out = plain});
    ref().linear({.x = x, .weight = weight.plain, .out = added, .add = true});
    for (const int64_t rows : kWideRows) {
      const View some = x.view().first(rows);
      const std::string what = cat(describe(info), ", ", rows, " rows");
      expect_same_bits(run(weight.packed, some, {}).values(), rows_of(plain, 0, rows), what);
      expect_same_bits(run(weight.packed, some, base.view().first(rows)).values(),
                       rows_of(added, 0, rows), what + ", added");
      if (HasFailure()) return;
    }
  }
}

TEST_P(WideEqual, RandomIsWithinTheBound) {
  constexpr int64_t kRows = 3;
  Rng rng(2);
  for (const WeightInfo& info : wide_cases()) {
    const TestWeight weight = make_weight(ops(), info, Fill::random, rng);
    const Guarded x = random_tensor({kRows, info.in}, rng);
    const Guarded right({kRows, info.out});
    ref().linear({.x = x, .weight = weight.plain, .out = right});
    const Guarded ours = run(weight.packed, x, {});
    for (int64_t r = 0; r < kRows; ++r)
      expect_within(rows_of(ours, r, 1), rows_of(right, r, 1),
                    linear_bound(weight, rows_of(x, r, 1), tolerance()),
                    cat(describe(info), ", row ", r));
  }
}

TEST_P(WideEqual, RowsAreInvariant) {
  Rng rng(3);
  for (const WeightInfo& info : wide_cases()) {
    const TestWeight weight = make_weight(ops(), info, Fill::random, rng);
    const Guarded x = random_tensor({kMostWideRows, info.in}, rng);
    expect_invariant_linear(weight, x, {});
    expect_invariant_linear(weight, x, random_tensor({kMostWideRows, info.out}, rng));
    if (HasFailure()) return;
  }
}

// More tiles of outputs than an H200 has places for at once, so that its blocks go on to others.
TEST_P(WideEqual, ManyOutputs) {
  Rng rng(4);
  const WeightInfo info{WeightFormat::int4_group, 1433, 8320, 128};
  const TestWeight weight = make_weight(ops(), info, Fill::integers, rng);
  const Guarded x = exact_inputs(info, kMostWideRows, tolerance(), rng);
  const Guarded right({kMostWideRows, info.out});
  ref().linear({.x = x, .weight = weight.plain, .out = right});
  for (const int64_t rows : kWideRows)
    expect_same_bits(run(weight.packed, x.view().first(rows), {}).values(), rows_of(right, 0, rows),
                     cat(describe(info), ", ", rows, " rows"));
}

TEST_P(WideEqual, LinearsEqualEachLinear) {
  Rng rng(5);
  constexpr int64_t kIn = 8320;
  std::vector<TestWeight> weights;
  for (const WeightInfo& info :
       {WeightInfo{WeightFormat::int4_group, 40, kIn, 128},
        WeightInfo{WeightFormat::bf16, 3, kIn, 0}, WeightInfo{WeightFormat::int8_row, 17, kIn, 0},
        WeightInfo{WeightFormat::int4_group, 16, kIn, 128}})
    weights.push_back(make_weight(ops(), info, Fill::random, rng));
  for (const int64_t rows : kWideRows) {
    const Guarded x = random_tensor({rows, kIn}, rng);
    std::vector<Guarded> outs;
    std::vector<LinearOutput> outputs;
    for (const TestWeight& weight : weights) {
      outs.emplace_back(Shape{rows, weight.plain.info.out});
      outputs.push_back({.weight = weight.packed, .out = outs.back()});
    }
    ops().linears({.x = x, .outputs = outputs});
    for (size_t i = 0; i < weights.size(); ++i)
      expect_same_bits(outs[i].values(), run(weights[i].packed, x, {}).values(),
                       cat("linears, ", describe(weights[i].plain.info), ", ", rows, " rows"));
  }
}

struct WideMlp {
  WeightFormat format;
  int64_t hidden, width;
  int group;
  Activation activation;
  bool add;
};

// Its parts are held against the reference above; here, that they are the same together, and that
// a row is the same alone. The last ones are not wide: rows are rounded on their way all the same.
constexpr WideMlp kWideMlps[] = {
    {WeightFormat::int4_group, 128, 8320, 128, Activation::silu, true},
    {WeightFormat::int4_group, 128, 21504, 128, Activation::gelu_tanh, false},
    {WeightFormat::int4_group, 64, 8256, 64, Activation::gelu_tanh, true},
    {WeightFormat::fp8_block, 128, 8320, kFp8Block, Activation::silu, false},
    {WeightFormat::int4_group, 5120, 256, 128, Activation::silu, true},
    {WeightFormat::int4_group, 384, 640, 128, Activation::gelu_tanh, false},
};

TEST_P(WideEqual, GatedMlp) {
  Rng rng(6);
  for (const WideMlp& shape : kWideMlps) {
    const auto make = [&](int64_t out, int64_t in) {
      return make_weight(ops(), {shape.format, out, in, shape.group}, Fill::random, rng);
    };
    const TestWeight gate = make(shape.width, shape.hidden), up = make(shape.width, shape.hidden),
                     down = make(shape.hidden, shape.width);
    const GatedMlp mlp{gate.packed, up.packed, down.packed};
    const Guarded x = random_tensor({kMostWideRows, shape.hidden}, rng);
    const Guarded base = random_tensor({kMostWideRows, shape.hidden}, rng);
    const Guarded scratch({2, kMostWideRows, shape.width});
    const auto args = [&](int64_t first, int64_t rows, const View& out) {
      return GatedMlpArgs{.x = x.view().slice(first, rows),
                          .mlp = mlp,
                          .scratch = scratch,
                          .out = out,
                          .activation = shape.activation,
                          .add = shape.add};
    };
    const Guarded alone = copy_of(base);
    for (int64_t r = 0; r < kMostWideRows; ++r)
      ops().gated_mlp(args(r, 1, alone.view().slice(r, 1)));
    for (const int64_t rows : kWideRows) {
      const int64_t first = (kMostWideRows - rows) / 2;
      const View before = base.view().slice(first, rows);
      const Guarded ours = copy_of(before), composed = copy_of(before);
      ops().gated_mlp(args(first, rows, ours));
      ops().Ops::gated_mlp(args(first, rows, composed));
      const std::string what = cat("gated_mlp, ", name_of(shape.format), ", hidden ", shape.hidden,
                                   ", width ", shape.width, ", ", rows, " rows");
      expect_same_bits(ours.values(), rows_of(alone, first, rows), what + " against each alone");
      expect_same_bits(ours.values(), composed.values(), what + " against composition");
      if (HasFailure()) return;
    }
  }
}

SLIP_TEST_BACKENDS(WideEqual);

}  // namespace
}  // namespace slip
