// linear, linears and embed of every backend against the reference.
#include <algorithm>
#include <cmath>

#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

class LinearEqual : public OpsTest {
 protected:
  // Reference and backend on the same weight; the backend's out is poisoned first.
  Guarded expected(const TestWeight& weight, const View& x) {
    Guarded out({x.shape[0], weight.plain.info.out});
    ref().linear({.x = x, .weight = weight.plain, .out = out});
    return out;
  }
  Guarded got(const TestWeight& weight, const View& x) {
    Guarded out({x.shape[0], weight.plain.info.out});
    ops().linear({.x = x, .weight = weight.packed, .out = out});
    return out;
  }
};

constexpr int64_t kOuts[] = {1, 4, 15, 16, 17, 33, 384};

TEST_P(LinearEqual, IntegersAreExact) {
  Rng rng(1);
  for (WeightInfo info : weight_cases()) {
    for (const int64_t out : some_of(kOuts)) {
      info.out = out;
      const TestWeight weight = make_weight(ops(), info, Fill::integers, rng);
      const Guarded x = exact_inputs(info, kMostRows, tolerance(), rng);
      const Guarded all = expected(weight, x);
      for (const int64_t rows : some_of(kRowCounts)) {
        const Guarded some = got(weight, x.view().first(rows));
        expect_same_bits(some.values(), rows_of(all, 0, rows),
                         cat(describe(info), ", ", rows, " rows"));
        if (HasFailure()) return;
      }
    }
  }
}

// Codes and activations all at their largest magnitude: 16-bit sums of products would saturate.
TEST_P(LinearEqual, ExtremesDoNotSaturate) {
  Rng rng(2);
  for (const WeightFormat format : {WeightFormat::int8_row, WeightFormat::int4_group}) {
    for (const int64_t in : {128, 384, 1024}) {
      const WeightInfo info{format, 17, in, format == WeightFormat::int4_group ? 128 : 0};
      TestWeight weight = make_weight(ops(), info, Fill::extremes, rng);
      Guarded x({5, in});
      for (int64_t r = 0; r < 5; ++r) {
        // Rows 0 to 2 take the signs of a weight row, so that no product cancels; then constants.
        for (int64_t i = 0; i < in; ++i) {
          const double sign = r < 3 ? weight.at(r * 8, i) : (r == 3 ? 1.0 : -1.0);
          x.f32()[r * in + i] = sign > 0 ? 127.0f : -127.0f;
        }
      }
      expect_same_bits(got(weight, x).values(), expected(weight, x).values(), describe(info));
    }
  }
}

TEST_P(LinearEqual, RandomIsWithinTheBound) {
  Rng rng(3);
  std::vector<int64_t> row_counts = {5};
  if (tolerance().invariant_rows < kMostRows) row_counts.insert(row_counts.end(), {17, kMostRows});
  for (WeightInfo info : weight_cases()) {
    for (const int64_t out : some_of(kOuts)) {
      info.out = out;
      const TestWeight weight = make_weight(ops(), info, Fill::random, rng);
      for (const int64_t rows : row_counts) {
        const Guarded x = random_tensor({rows, info.in}, rng);
        const Guarded right = expected(weight, x);
        const Guarded ours = got(weight, x);
        for (int64_t r = 0; r < rows; ++r)
          expect_within(rows_of(ours, r, 1), rows_of(right, r, 1),
                        linear_bound(weight, rows_of(x, r, 1), tolerance()),
                        cat(describe(info), ", row ", r, " of ", rows));
        if (HasFailure()) return;
      }
    }
  }
}

double root_mean_square(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(double(a[i]) - double(b[i]), 2);
  return std::sqrt(sum / double(a.size()));
}

// The bound above is for the worst case and finds gross errors only; a fast kernel is also at most
// twice as imprecise as a plain float loop with the same number formats.
TEST_P(LinearEqual, IsAsPreciseAsAPlainVersion) {
  Rng rng(4);
  for (const WeightInfo& info :
       {WeightInfo{WeightFormat::f32, 256, 1024, 0}, WeightInfo{WeightFormat::bf16, 256, 1024, 0},
        WeightInfo{WeightFormat::f16, 256, 1024, 0},
        WeightInfo{WeightFormat::fp8_block, 256, 1024, kFp8Block},
        WeightInfo{WeightFormat::int8_row, 256, 1024, 0},
        WeightInfo{WeightFormat::int4_group, 256, 1024, 128},
        WeightInfo{WeightFormat::int4_group, 256, 1024, 32}}) {
    const TestWeight weight = make_weight(ops(), info, Fill::random, rng);
    const Guarded x = random_tensor({1, info.in}, rng);
    const Guarded right = expected(weight, x);
    const std::vector<float> plain = plain_linear(weight, x.values(), tolerance());
    const std::vector<float> zero(right.values().size(), 0.0f);
    const double allowed = 2 * root_mean_square(plain, right.values()) +
                           kRoundoff * root_mean_square(zero, right.values());
    EXPECT_LE(root_mean_square(got(weight, x).values(), right.values()) / allowed, 1)
        << describe(info) << ": error over twice a plain version's";
  }
}

TEST_P(LinearEqual, HostileInputs) {
  Rng rng(5);
  for (WeightInfo info : weight_cases()) {
    info.out = 17;
    const TestWeight weight = make_weight(ops(), info, Fill::random, rng);
    Guarded x = random_tensor({6, info.in}, rng);
    for (float& value : rows_of(x, 0, 1)) value = 0;
    for (float& value : rows_of(x, 1, 1)) value = -0.0f;
    rows_of(x, 2, 1)[size_t(info.in / 2)] = 1e6f;  // an outlier beside ordinary values
    // FP8 weights pay for their speed with range: inputs up to 1e14.
    rows_of(x, 3, 1)[size_t(info.in - 1)] =
        info.format == WeightFormat::fp8_block ? -3e13f : -3e30f;
    for (float& value : rows_of(x, 4, 1)) value *= 1e-40f;  // subnormal
    for (float& value : rows_of(x, 5, 1)) value *= 1e-20f;
    const Guarded right = expected(weight, x);
    const Guarded ours = got(weight, x);
    for (int64_t r = 0; r < 6; ++r)
      expect_within(rows_of(ours, r, 1), rows_of(right, r, 1),
                    linear_bound(weight, rows_of(x, r, 1), tolerance()),
                    cat(describe(info), ", hostile row ", r));
  }
}

TEST_P(LinearEqual, RowsAreInvariant) {
  Rng rng(6);
  constexpr int64_t kSomeOuts[] = {1, 17, 384};
  const int64_t most = std::min(kMostRows, tolerance().invariant_rows);
  for (WeightInfo info : weight_cases()) {
    for (const int64_t out : some_of(kSomeOuts)) {
      info.out = out;
      const TestWeight weight = make_weight(ops(), info, Fill::random, rng);
      const Guarded x = random_tensor({most, info.in}, rng);
      Guarded alone({most, out});
      for (int64_t r = 0; r < most; ++r)
        ops().linear(
            {.x = x.view().slice(r, 1), .weight = weight.packed, .out = alone.view().slice(r, 1)});
      for (const int64_t rows : kRowCounts) {
        if (rows > most) break;
        const int64_t first = (most - rows) / 2;
        const Guarded batch = got(weight, x.view().slice(first, rows));
        expect_same_bits(batch.values(), rows_of(alone, first, rows),
                         cat(describe(info), ", ", rows, " rows from ", first));
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(LinearEqual, AddAccumulates) {
  Rng rng(7);
  for (WeightInfo info : weight_cases()) {
    for (const int64_t rows : {1, 4, 17}) {
      info.out = 33;
      const TestWeight weight = make_weight(ops(), info, Fill::integers, rng);
      const Guarded x = exact_inputs(info, rows, tolerance(), rng);
      const Guarded right = integer_tensor({rows, info.out}, rng, 100);
      const Guarded ours = copy_of(right);
      ref().linear({.x = x, .weight = weight.plain, .out = right, .add = true});
      ops().linear({.x = x, .weight = weight.packed, .out = ours, .add = true});
      expect_same_bits(ours.values(), right.values(), cat(describe(info), ", add"));
    }
  }
}

// Few outputs of so many inputs that a backend may cut them into parts.
TEST_P(LinearEqual, ManyRowsOfWideInputs) {
  if (tolerance().invariant_rows >= kMostRows) return;  // they are computed like few
  Rng rng(10);
  for (const WeightInfo& info : {WeightInfo{WeightFormat::int4_group, 136, 1664, 128},
                                 WeightInfo{WeightFormat::int4_group, 33, 1088, 64},
                                 WeightInfo{WeightFormat::int4_group, 16, 1056, 32},
                                 WeightInfo{WeightFormat::fp8_block, 130, 1293, kFp8Block},
                                 WeightInfo{WeightFormat::int8_row, 40, 1153, 0}}) {
    for (const int64_t rows : {17, 65}) {
      const TestWeight exact = make_weight(ops(), info, Fill::integers, rng);
      const Guarded integers = exact_inputs(info, rows, tolerance(), rng);
      const Guarded right = integer_tensor({rows, info.out}, rng, 100), ours = copy_of(right);
      ref().linear({.x = integers, .weight = exact.plain, .out = right, .add = true});
      ops().linear({.x = integers, .weight = exact.packed, .out = ours, .add = true});
      expect_same_bits(ours.values(), right.values(), cat(describe(info), ", ", rows, " rows"));

      const TestWeight weight = make_weight(ops(), info, Fill::random, rng);
      const Guarded x = random_tensor({rows, info.in}, rng);
      const Guarded wanted = expected(weight, x), found = got(weight, x);
      for (int64_t r = 0; r < rows; ++r)
        expect_within(rows_of(found, r, 1), rows_of(wanted, r, 1),
                      linear_bound(weight, rows_of(x, r, 1), tolerance()),
                      cat(describe(info), ", row ", r, " of ", rows));
    }
  }
}

TEST_P(LinearEqual, LinearsEqualEachLinear) {
  Rng rng(8);
  for (const int64_t rows : kRowCounts) {
    const int64_t in = 256;
    std::vector<TestWeight> weights;
    for (const WeightInfo& info :
         {WeightInfo{WeightFormat::int4_group, 96, in, 128},
          WeightInfo{WeightFormat::bf16, 5, in, 0},
          WeightInfo{WeightFormat::int4_group, 17, in, 64},
          WeightInfo{WeightFormat::fp8_block, 33, in, kFp8Block},
          WeightInfo{WeightFormat::int8_row, 1, in, 0}, WeightInfo{WeightFormat::f32, 16, in, 0}})
      weights.push_back(make_weight(ops(), info, Fill::random, rng));
    const Guarded x = random_tensor({rows, in}, rng);
    std::vector<Guarded> outs;
    std::vector<LinearOutput> outputs;
    for (const TestWeight& weight : weights) {
      outs.emplace_back(Shape{rows, weight.plain.info.out});
      outputs.push_back({.weight = weight.packed, .out = outs.back()});
    }
    ops().linears({.x = x, .outputs = outputs});
    for (size_t i = 0; i < weights.size(); ++i)
      expect_same_bits(outs[i].values(), got(weights[i], x).values(),
                       cat("linears, ", describe(weights[i].plain.info), ", ", rows, " rows"));
  }
}

TEST_P(LinearEqual, EmbedIsExact) {
  Rng rng(9);
  for (WeightInfo info : weight_cases()) {
    info.out = 133;
    const TestWeight table = make_weight(ops(), info, Fill::random, rng);
    for (const int64_t rows : {1, 7}) {
      Guarded ids({rows}, DType::i32);
      for (int64_t r = 0; r < rows; ++r) ids.i32()[r] = int32_t(rng.integer(0, info.out - 1));
      ids.i32()[0] = int32_t(info.out - 1);
      Guarded out({rows, info.in});
      ops().embed({.ids = ids, .table = table.packed, .out = out});
      std::vector<float> right;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < info.in; ++i)
          right.push_back(weight_at(table.plain, ids.i32()[r], i));
      // Zero times a negative scale may be either zero.
      expect_close(out.values(), right, 0, 0, cat("embed, ", describe(info)));
    }
  }
}

SLIP_TEST_BACKENDS(LinearEqual);
INSTANTIATE_TEST_SUITE_P(Bytes, LinearEqual, ::testing::ValuesIn(byte_backends()), name_of_backend);

}  // namespace
}  // namespace slip
