// Layers of more outputs than the CPU's loops compute side by side, with more rows than they take
// at a time: every row has the bits that it has alone.
#include <gtest/gtest.h>

#include "base/cpu.h"
#include "kernels/cpu/cpu_ops_impl.h"
#include "tests/amx/emulated_amx.h"
#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

constexpr int64_t kRows = 150, kOut = 2325;

struct NamedLoops {
  std::string name;
  std::array<Loops, 2> loops;  // for activations of one and of two bytes
};

std::vector<NamedLoops> loops_under_test() {
  std::vector<NamedLoops> all;
  for (const Isa isa : available_isas())
    all.push_back({id_of(isa), {loops_for(isa, 1), loops_for(isa, 2)}});
#if defined(__x86_64__)
  if (cpu_has_avx512_vnni())
    all.push_back({"amx_emulated", {emulated_amx_loops(1), emulated_amx_loops(2)}});
#endif
  return all;
}

class WideLayers : public ::testing::TestWithParam<NamedLoops> {};

TEST_P(WideLayers, RowsAreInvariant) {
  ThreadPool pool(1);  // so that all outputs are few pieces of work
  for (const Loops& loops : GetParam().loops) {
    CpuOps ops(pool, loops);
    for (const WeightInfo& info : {WeightInfo{WeightFormat::int4_group, kOut, 384, 128},
                                   WeightInfo{WeightFormat::int4_group, kOut, 192, 64},
                                   WeightInfo{WeightFormat::int8_row, kOut, 194, 0}}) {
      Rng rng(17);
      ops.reserve({.rows = kRows, .widest_input = info.in});
      const TestWeight weight = make_weight(ops, info, Fill::random, rng);
      const Guarded x = random_tensor({kRows, info.in}, rng);
      Guarded all({kRows, kOut}), alone({1, kOut});
      ops.linear({.x = x, .weight = weight.packed, .out = all});
      for (const int64_t row : {0, 1, 15, 16, 47, 48, 63, 64, 65, 127, 128, 149}) {
        ops.linear({.x = x.view().slice(row, 1), .weight = weight.packed, .out = alone});
        expect_same_bits(rows_of(all, row, 1), alone.values(),
                         cat(describe(info), ", ", loops.activation_bytes, " bytes, row ", row));
      }
    }
  }
}

std::string loops_name(const ::testing::TestParamInfo<NamedLoops>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Isas, WideLayers, ::testing::ValuesIn(loops_under_test()), loops_name);

}  // namespace
}  // namespace slip
