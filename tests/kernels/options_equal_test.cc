// The optional fields of args.h, and the operations that came with them, of every backend against
// the reference.
#include <algorithm>
#include <cmath>

#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

class OptionsEqual : public OpsTest {};

constexpr int64_t kDims[] = {1, 3, 15, 16, 17, 64, 384, 1025};
constexpr int64_t kRows = 17;

TEST_P(OptionsEqual, RmsNorm) {
  Rng rng(1);
  for (const int64_t dim : kDims) {
    const Guarded x = random_tensor({kRows, dim}, rng), base = random_tensor({kRows, dim}, rng);
    const Guarded scale = random_tensor({dim}, rng);
    for (const bool scaled : {true, false}) {
      for (const bool add : {true, false}) {
        const auto run = [&](Ops& on, int64_t first, int64_t rows, const View& out) {
          on.rms_norm({.x = x.view().slice(first, rows),
                       .scale = scaled ? scale.view() : View{},
                       .out = out,
                       .eps = 1e-6f,
                       .add = add,
                       .factor = 0.37f});
        };
        const Guarded right = copy_of(base), ours = copy_of(base), alone = copy_of(base);
        run(ref(), 0, kRows, right);
        run(ops(), 0, kRows, ours);
        for (int64_t r = 0; r < kRows; ++r) run(ops(), r, 1, alone.view().slice(r, 1));
        // Two terms of up to 6 and 6 sqrt(dim) that may cancel.
        const double error = 40 * std::sqrt(double(dim)) * (double(dim) / 2 + 10) * kRoundoff;
        expect_close(ours.values(), right.values(), 0, error, cat("rms_norm of ", dim));
        expect_same_bits(alone.values(), ours.values(), cat("rms_norm of ", dim, ", row by row"));
      }
    }
  }
}

TEST_P(OptionsEqual, GeluOfSomeColumns) {
  Rng rng(2);
  for (const int64_t width : kDims) {
    const int64_t wide = 3 * width + 5, first = width + 2;
    const Guarded gate = random_tensor({kRows, width}, rng, 4);
    gate.f32()[0] = 40;
    if (width > 2) gate.f32()[2] = -40;
    const Guarded up = random_tensor({kRows, wide}, rng);
    Guarded right({kRows, width}), ours({kRows, width});
    const auto run = [&](Ops& on, const View& out) {
      on.gated_mul({.gate = gate,
                    .up = up,
                    .out = out,
                    .activation = Activation::gelu_tanh,
                    .first_column = first});
    };
    run(ref(), right);
    run(ops(), ours);
    // Where a negative gate meets a tanh near -1, their difference is what remains.
    expect_close(ours.values(), right.values(), 8 * exp_error(), 64 * kRoundoff,
                 cat("gelu of ", width));
    const Guarded in_place = copy_of(gate);
    ops().gated_mul({.gate = in_place,
                     .up = up,
                     .out = in_place,
                     .activation = Activation::gelu_tanh,
                     .first_column = first});
    expect_same_bits(in_place.values(), ours.values(), "gelu in place");
  }
}

TEST_P(OptionsEqual, SoftCap) {
  Rng rng(3);
  for (const int64_t width : {1, 17, 1000, 10001}) {
    const Guarded x = random_tensor({3, width}, rng, 30);
    x.f32()[0] = 1e6f;
    x.f32()[3 * width - 1] = -1e6f;
    const Guarded right = copy_of(x), ours = copy_of(x);
    ref().soft_cap({.x = right, .cap = 30});
    ops().soft_cap({.x = ours, .cap = 30});
    expect_close(ours.values(), right.values(), 0, 30 * (2 * exp_error() + 4 * kRoundoff),
                 cat("soft_cap of ", width));
  }
}

TEST_P(OptionsEqual, EmbeddingTimesAFactor) {
  Rng rng(4);
  for (const int64_t width : {1, 33, 1024, 1025, 2560})
    for (const WeightFormat format : {WeightFormat::f32, WeightFormat::bf16, WeightFormat::f16}) {
      const TestWeight table = make_weight(ops(), {format, 37, width, 0}, Fill::random, rng);
      Guarded chosen({5}, DType::i32);
      for (int64_t i = 0; i < 5; ++i) chosen.i32()[i] = int32_t((i * 17 + 36) % 37);
      for (const View& ids : {chosen.view(), View{}}) {  // without any: the first rows
        const std::string what = cat(ids.empty() ? "first rows" : "rows", " of ", width);
        Guarded right({5, width}), packed({5, width}), plain({5, width});
        ref().embed({.ids = ids, .table = table.plain, .out = right, .factor = 7.25f});
        ops().embed({.ids = ids, .table = table.packed, .out = packed, .factor = 7.25f});
        ops().embed({.ids = ids, .table = table.plain, .out = plain, .factor = 7.25f});
        expect_same_bits(packed.values(), right.values(), what);
        expect_same_bits(plain.values(), right.values(), what + ", not packed");
      }
    }
}

TEST_P(OptionsEqual, RouteWithScales) {
  Rng rng(5);
  const Guarded logits = random_tensor({kRows, 24}, rng, 3), scales = random_tensor({24}, rng);
  Guarded right_ids({kRows, 5}, DType::i32), ids({kRows, 5}, DType::i32);
  Guarded right({kRows, 5}), ours({kRows, 5});
  ref().route({.logits = logits, .ids = right_ids, .weights = right, .scales = scales});
  ops().route({.logits = logits, .ids = ids, .weights = ours, .scales = scales});
  expect_close(ours.values(), right.values(), 2 * exp_error() + 20 * kRoundoff, kTiny, "route");
  for (int64_t i = 0; i < kRows * 5; ++i) EXPECT_EQ(ids.i32()[i], right_ids.i32()[i]);
}

TEST_P(OptionsEqual, ClusterHead) {
  Rng rng(7);
  constexpr int64_t kClusters = 7, kSize = 5, kIn = 33, kTopK = 2, kVocabulary = 37;
  std::vector<TestWeight> tests;
  std::vector<Weight> plain, packed;
  for (int64_t i = 0; i < kClusters; ++i) {
    tests.push_back(make_weight(ops(), {WeightFormat::bf16, kSize, kIn, 0}, Fill::random, rng));
    plain.push_back(tests.back().plain);
    packed.push_back(tests.back().packed);
  }
  const Guarded x = random_tensor({3, kIn}, rng);
  Guarded chosen({3, kTopK}, DType::i32), tokens({kClusters, kSize}, DType::i32);
  for (int64_t i = 0; i < 3 * kTopK; ++i) chosen.i32()[i] = int32_t(6 - i);
  for (int64_t i = 0; i < kClusters * kSize; ++i) tokens.i32()[i] = int32_t((i * 8 + 3) % 37);
  Guarded scratch({3, kTopK, kSize}), right({3, kVocabulary}), ours({3, kVocabulary});
  const auto run = [&](Ops& on, const std::vector<Weight>& clusters, const View& out) {
    on.cluster_head({.x = x,
                     .chosen = chosen,
                     .clusters = clusters,
                     .tokens = tokens,
                     .scratch = scratch,
                     .out = out});
  };
  run(ref(), plain, right);
  run(ops(), packed, ours);
  // What is not asked is the least of what is, so that one bound holds for a row.
  std::vector<double> allowed;
  for (int64_t row = 0; row < 3; ++row) {
    double bound = 0;
    for (int64_t rank = 0; rank < kTopK; ++rank) {
      const TestWeight& cluster = tests[size_t(chosen.i32()[row * kTopK + rank])];
      for (const double each : linear_bound(cluster, rows_of(x, row, 1), tolerance()))
        bound = std::max(bound, each);
    }
    for (const float value : rows_of(right, row, 1))
      allowed.push_back(bound + 2 * kRoundoff * std::fabs(double(value)));
  }
  expect_within(ours.values(), right.values(), allowed, "cluster_head");
  // By hand: the second row's clusters are 4 and 3.
  double least = INFINITY;
  const double exact = allowed[size_t(kVocabulary)];
  for (const int64_t cluster : {4, 3}) {
    for (int64_t i = 0; i < kSize; ++i) {
      double logit = 0;
      for (int64_t d = 0; d < kIn; ++d)
        logit += tests[size_t(cluster)].at(i, d) * double(x.f32()[kIn + d]);
      EXPECT_NEAR(right.f32()[kVocabulary + tokens.i32()[cluster * kSize + i]], logit, exact);
      least = std::min(least, logit);
    }
  }
  EXPECT_NEAR(right.f32()[kVocabulary + tokens.i32()[0]], least - 1, exact) << "not asked";
}

SLIP_TEST_BACKENDS(OptionsEqual);

}  // namespace
}  // namespace slip
