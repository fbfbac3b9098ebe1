// Activations of one byte: exact where a byte is enough, near where it is not, the same for any
// rows beside.
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/ref/ref_ops.h"
#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

constexpr int64_t kRows = 9, kOut = 37;  // more rows than any tile has

std::vector<WeightInfo> integer_weights() {
  return {{WeightFormat::int4_group, kOut, 384, 128},
          {WeightFormat::int4_group, kOut, 96, 32},
          {WeightFormat::int8_row, kOut, 384, 0},
          {WeightFormat::int8_row, kOut, 130, 0}};
}

std::vector<float> product(Ops& ops, const WeightInfo& info, Fill fill, uint64_t seed,
                           const Guarded& x, int64_t step) {
  Rng rng(seed);
  const TestWeight weight = make_weight(ops, info, fill, rng);
  Guarded out({kRows, kOut});
  for (int64_t row = 0; row < kRows; row += step) {
    const int64_t rows = std::min(step, kRows - row);
    ops.linear({.x = x.view().slice(row, rows),
                .weight = weight.packed,
                .out = out.view().slice(row, rows)});
  }
  return {out.values().begin(), out.values().end()};
}

TEST(ByteActivations, AreTheSameForAnyRowsBeside) {
  Rng rng(11);
  for (const WeightInfo& info : integer_weights()) {
    const Guarded x = random_tensor({kRows, info.in}, rng);
    for (const Isa isa : available_isas()) {
      std::vector<float> first;
      ThreadPool pool(2);
      const auto ops = make_cpu_ops(pool, isa, 1);
      ops->reserve({.rows = kRows, .widest_input = info.in});
      for (int64_t step = 1; step <= kRows; ++step) {
        const std::vector<float> out = product(*ops, info, Fill::random, 5, x, step);
        if (first.empty()) first = out;
        EXPECT_EQ(out, first) << name_of(isa) << ", " << step << " rows at a time";
      }
    }
  }
}

TEST(ByteActivations, AreExactForBytesAndNearForOthers) {
  Rng rng(12);
  const auto ref = make_ref_ops();
  for (const WeightInfo& info : integer_weights()) {
    ThreadPool pool(1);
    const auto ops = make_cpu_ops(pool, available_isas().front(), 1);
    ops->reserve({.rows = kRows, .widest_input = info.in});
    Guarded bytes({kRows, info.in});
    for (float& value : bytes.values()) value = float(rng.nonzero(127));
    // Every group of inputs, of a row that may end in a short one, reaches the last step.
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t i = 0; i < info.in; i += 2)
        if (i % 32 == 0 || i == info.in - 2) rows_of(bytes, row, 1)[size_t(i)] = 127;
    const auto difference = [&](const Guarded& x) {
      const std::vector<float> ours = product(*ops, info, Fill::random, 5, x, kRows);
      const std::vector<float> right = product(*ref, info, Fill::random, 5, x, kRows);
      double error = 0, power = 0;
      for (size_t i = 0; i < right.size(); ++i) {
        error += std::pow(double(ours[i]) - double(right[i]), 2);
        power += std::pow(double(right[i]), 2);
      }
      return std::sqrt(error / power);
    };
    EXPECT_LT(difference(bytes), 1e-6) << describe(info);
    const double rounded = difference(random_tensor({kRows, info.in}, rng));
    EXPECT_LT(rounded, 0.02) << describe(info);
    EXPECT_GT(rounded, 1e-3) << describe(info) << ": is it rounded at all?";
  }
}

// Sums of 16 bits, where an instruction set has them, must be widened in time.
TEST(ByteActivations, LargestSumsFit) {
  const auto ref = make_ref_ops();
  for (const WeightInfo& info : integer_weights()) {
    Guarded x({kRows, info.in});
    for (int64_t row = 0; row < kRows; ++row)
      for (float& value : rows_of(x, row, 1)) value = row % 2 == 0 ? 127.0f : -127.0f;
    const std::vector<float> right = product(*ref, info, Fill::extremes, 5, x, kRows);
    for (const Isa isa : available_isas()) {
      ThreadPool pool(1);
      const auto ops = make_cpu_ops(pool, isa, 1);
      ops->reserve({.rows = kRows, .widest_input = info.in});
      for (int64_t step = 1; step <= kRows; ++step)
        EXPECT_EQ(product(*ops, info, Fill::extremes, 5, x, step), right)
            << name_of(isa) << ", " << describe(info) << ", " << step << " rows at a time";
    }
  }
}

}  // namespace
}  // namespace slip
