// Layers of more outputs than the CPU's loops compute side by side, with more rows than they take
// at a time: every row has the bits that it has alone.
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_ops.h"
#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

constexpr int64_t kRows = 150, kOut = 2320;

class WideLayers : public ::testing::TestWithParam<Isa> {};

TEST_P(WideLayers, RowsAreInvariant) {
  ThreadPool pool(1);  // so that all outputs are few pieces of work
  for (const int bytes : {1, 2}) {
    const auto ops = make_cpu_ops(pool, GetParam(), bytes);
    for (const WeightInfo& info : {WeightInfo{WeightFormat::int4_group, kOut, 384, 128},
                                   WeightInfo{WeightFormat::int4_group, kOut, 192, 64},
                                   WeightInfo{WeightFormat::int8_row, kOut, 194, 0}}) {
      Rng rng(17);
      ops->reserve({.rows = kRows, .widest_input = info.in});
      const TestWeight weight = make_weight(*ops, info, Fill::random, rng);
      const Guarded x = random_tensor({kRows, info.in}, rng);
      Guarded all({kRows, kOut}), alone({1, kOut});
      ops->linear({.x = x, .weight = weight.packed, .out = all});
      for (const int64_t row : {0, 1, 15, 16, 47, 48, 63, 64, 65, 127, 128, 149}) {
        ops->linear({.x = x.view().slice(row, 1), .weight = weight.packed, .out = alone});
        expect_same_bits(rows_of(all, row, 1), alone.values(),
                         cat(describe(info), ", ", bytes, " bytes, row ", row));
      }
    }
  }
}

std::string isa_name(const ::testing::TestParamInfo<Isa>& info) { return id_of(info.param); }
INSTANTIATE_TEST_SUITE_P(Isas, WideLayers, ::testing::ValuesIn(available_isas()), isa_name);

}  // namespace
}  // namespace slip
