// Weights of 16 bits that are so large that a backend may keep them in another way than small ones.
#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

constexpr int64_t kLargeRows[] = {1, 2, 5, 9, 16};
constexpr int64_t kMostFew = 16;

// Whole tiles and slabs, more of them, neither, and so wide that inputs are cut into parts.
std::vector<WeightInfo> large_cases() {
  return {{WeightFormat::bf16, 512, 512, 0},
          {WeightFormat::bf16, 520, 1536, 0},
          {WeightFormat::f16, 530, 577, 0},
          {WeightFormat::bf16, 645, 1030, 0},
          {WeightFormat::bf16, 512, 8321, 0}};
}

class LargeFloats : public OpsTest {
 protected:
  Guarded run(Ops& by, const Weight& weight, const View& x) {
    Guarded out({x.shape[0], weight.info.out});
    by.linear({.x = x, .weight = weight, .out = out});
    return out;
  }
};

TEST_P(LargeFloats, IntegersAreExact) {
  Rng rng(1);
  for (const WeightInfo& info : large_cases()) {
    const TestWeight weight = make_weight(ops(), info, Fill::integers, rng);
    const Guarded x = exact_inputs(info, kMostRows, tolerance(), rng);
    const Guarded right = run(ref(), weight.plain, x);
    for (const int64_t rows : {int64_t{1}, int64_t{3}, int64_t{9}, kMostRows})
      expect_same_bits(run(ops(), weight.packed, x.view().first(rows)).values(),
                       rows_of(right, 0, rows), cat(describe(info), ", ", rows, " rows"));
  }
}

TEST_P(LargeFloats, RandomIsWithinTheBound) {
  Rng rng(2);
  for (const WeightInfo& info : large_cases()) {
    const TestWeight weight = make_weight(ops(), info, Fill::random, rng);
    for (const int64_t rows : {int64_t{2}, kMostRows}) {
      const Guarded x = random_tensor({rows, info.in}, rng);
      const Guarded right = run(ref(), weight.plain, x), ours = run(ops(), weight.packed, x);
      for (int64_t r = 0; r < rows; ++r)
        expect_within(rows_of(ours, r, 1), rows_of(right, r, 1),
                      linear_bound(weight, rows_of(x, r, 1), tolerance()),
                      cat(describe(info), ", row ", r, " of ", rows));
    }
  }
}

// An output is as precise as its own weights allow, whatever those of others are.
TEST_P(LargeFloats, OutputsOfAnyMagnitude) {
  Rng rng(3);
  const WeightInfo info{WeightFormat::bf16, 512, 640, 0};
  TestWeight weight = make_weight(ops(), info, Fill::random, rng);
  constexpr float kFactors[] = {1, 1e-30f, 1e30f, 0, 1e-6f, 1e6f};
  for (int64_t o = 0; o < info.out; ++o)
    for (int64_t i = 0; i < info.in; ++i) {
      uint16_t& bits = weight.plain.values.as<uint16_t>(DType::bf16)[o * info.in + i];
      bits = float_to_bf16(bf16_to_float(bits) * kFactors[o % std::size(kFactors)]);
      weight.dense[size_t(o * info.in + i)] = bf16_to_float(bits);
    }
  weight.packed = ops().pack(weight.plain, weight.packed_storage.bytes());
  for (const int64_t rows : {int64_t{1}, kMostRows}) {
    const Guarded x = random_tensor({rows, info.in}, rng);
    const Guarded right = run(ref(), weight.plain, x), ours = run(ops(), weight.packed, x);
    for (int64_t r = 0; r < rows; ++r)
      expect_within(rows_of(ours, r, 1), rows_of(right, r, 1),
                    linear_bound(weight, rows_of(x, r, 1), tolerance()), cat("row ", r));
  }
}

TEST_P(LargeFloats, RowsAreInvariant) {
  Rng rng(4);
  for (const WeightInfo& info : large_cases()) {
    const TestWeight weight = make_weight(ops(), info, Fill::random, rng);
    const Guarded x = random_tensor({kMostFew, info.in}, rng);
    const Guarded all = run(ops(), weight.packed, x);
    for (const int64_t rows : kLargeRows)
      expect_same_bits(run(ops(), weight.packed, x.view().slice(kMostFew - rows, rows)).values(),
                       rows_of(all, kMostFew - rows, rows),
                       cat(describe(info), ", ", rows, " rows"));
  }
}

// Large ones beside small ones, and in the end beside others, normed on their way in.
TEST_P(LargeFloats, NormLinearsEqualNormAndLinears) {
  Rng rng(5);
  constexpr int64_t kIn = 640;
  std::vector<TestWeight> weights;
  for (const WeightInfo& info :
       {WeightInfo{WeightFormat::bf16, 520, kIn, 0}, WeightInfo{WeightFormat::bf16, 5, kIn, 0},
        WeightInfo{WeightFormat::f16, 512, kIn, 0}})
    weights.push_back(make_weight(ops(), info, Fill::random, rng));
  const Guarded scale = random_tensor({kIn}, rng);
  for (const int64_t rows : {1, 3, 11, 3}) {
    if (rows == 11)
      weights.push_back(
          make_weight(ops(), {WeightFormat::int4_group, 48, kIn, 128}, Fill::random, rng));
    const Guarded x = random_tensor({rows, kIn}, rng);
    const Guarded normed({rows, kIn}), normed_first({rows, kIn});
    std::vector<Guarded> outs, outs_first;
    std::vector<LinearOutput> outputs, outputs_first;
    for (const TestWeight& weight : weights) {
      outs.emplace_back(Shape{rows, weight.plain.info.out});
      outs_first.emplace_back(Shape{rows, weight.plain.info.out});
      outputs.push_back({.weight = weight.packed, .out = outs.back()});
      outputs_first.push_back({.weight = weight.packed, .out = outs_first.back()});
    }
    ops().norm_linears(
        {.norm = {.x = x, .scale = scale, .out = normed, .eps = 1e-6f}, .outputs = outputs});
    ops().rms_norm({.x = x, .scale = scale, .out = normed_first, .eps = 1e-6f});
    ops().linears({.x = normed_first, .outputs = outputs_first});
    expect_same_bits(normed.values(), normed_first.values(), cat("normed, ", rows, " rows"));
    for (size_t i = 0; i < weights.size(); ++i)
      expect_same_bits(outs[i].values(), outs_first[i].values(),
                       cat(describe(weights[i].plain.info), ", ", rows, " rows"));
  }
}

TEST_P(LargeFloats, EmbedIsExact) {
  Rng rng(6);
  const WeightInfo info{WeightFormat::bf16, 513, 577, 0};
  const TestWeight table = make_weight(ops(), info, Fill::random, rng);
  Guarded ids({3}, DType::i32);
  ids.i32()[0] = 512, ids.i32()[1] = 0, ids.i32()[2] = 9;
  const Guarded out({3, info.in});
  ops().embed({.ids = ids, .table = table.packed, .out = out});
  std::vector<float> right;
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t i = 0; i < info.in; ++i) right.push_back(weight_at(table.plain, ids.i32()[r], i));
  expect_close(out.values(), right, 0, 0, "embed");
}

INSTANTIATE_TEST_SUITE_P(Backends, LargeFloats, ::testing::ValuesIn(fusing_backends()),
                         name_of_backend);

}  // namespace
}  // namespace slip
