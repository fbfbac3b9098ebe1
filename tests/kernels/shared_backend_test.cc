// A backend that several models use: what one of them reserves is not taken from another.
#include "kernels/cpu/cpu_ops.h"
#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

TEST(SharedBackend, KeepsRoomForTheLargest) {
  constexpr StepLimits kLarge{.rows = 16,
                              .widest_input = 512,
                              .top_k = 8,
                              .experts = 256,
                              .expert_width = 256,
                              .hidden = 512,
                              .q_heads = 4,
                              .head_dim = 64,
                              .context = 1024};
  constexpr StepLimits kSmall{
      .rows = 1, .widest_input = 32, .hidden = 32, .q_heads = 1, .head_dim = 32, .context = 16};
  ThreadPool pool(2);
  const std::unique_ptr<Ops> ops = make_cpu_ops(pool, available_isas().front());
  ops->reserve(kLarge);
  ops->reserve(kSmall);

  Rng rng(1);
  const WeightInfo info{WeightFormat::int8_row, 256, 512, 0},
      back{WeightFormat::int8_row, 512, 256, 0};
  const TestWeight up = make_weight(*ops, info, Fill::random, rng);
  const TestWeight down = make_weight(*ops, back, Fill::random, rng);
  const std::vector<GatedMlp> experts(256, GatedMlp{up.packed, up.packed, down.packed});
  const Guarded x = random_tensor({16, 512}, rng);
  const Guarded ids(Shape{16, 8}, DType::i32), weights = constant_tensor({16, 8}, 0.125f);
  for (int64_t i = 0; i < 16 * 8; ++i) ids.i32()[i] = int32_t(i * 37 % 256);
  const Guarded scratch = constant_tensor({320, 256}, 0);
  const Guarded found = constant_tensor({16, 512}, 0), expected = constant_tensor({16, 512}, 0);
  const GatedMlp none;
  const auto run = [&](Ops& on, const Guarded& out) {
    on.experts({.x = x,
                .ids = ids,
                .weights = weights,
                .experts = experts,
                .shared = none,
                .shared_gate = {},
                .scratch = scratch,
                .out = out,
                .add = false});
  };
  run(*ops, found);
  const std::unique_ptr<Ops> alone = make_cpu_ops(pool, available_isas().front());
  alone->reserve(kLarge);
  run(*alone, expected);
  expect_same_bits(found.values(), expected.values(), "experts behind a smaller reservation");
}

}  // namespace
}  // namespace slip
