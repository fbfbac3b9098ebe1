// The adapter that the tests of a GPU rely on, with the reference in the place of the GPU.
#include "tests/gpu/hosted_ops.h"

#include <gtest/gtest-spi.h>

#include <algorithm>
#include <cmath>

#include "kernels/ref/ref_ops_impl.h"
#include "tests/gpu/far_memory.h"
#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

using NormBody = std::function<void(const RmsNormArgs&)>;

// The reference in a memory of its own. rms_norm is whatever a test wants it to be.
class FarOps final : public RefOps {
 public:
  FarOps(FarMemory& memory, NormBody norm) : memory_(memory), norm_(std::move(norm)) {}
  Memory& memory() const override { return memory_; }
  void rms_norm(const RmsNormArgs& args) override {
    EXPECT_TRUE(memory_.holds(args.x) && memory_.holds(args.scale) && memory_.holds(args.out));
    norm_(args);
  }

 private:
  FarMemory& memory_;
  NormBody norm_;
};

class HostedOpsTest : public ::testing::Test {
 protected:
  void norm(const View& x, const View& scale, const View& out, NormBody body) {
    HostedOps ops(std::make_unique<FarOps>(memory_, std::move(body)));
    ops.rms_norm({.x = x, .scale = scale, .out = out, .eps = 0});
  }

  FarMemory memory_;
  const Guarded x_ = constant_tensor({2, 3}, 1);
  const Guarded scale_ = constant_tensor({3}, 2);
  const Guarded out_{{2, 3}};
};

TEST_F(HostedOpsTest, BringsBackWhatWasWrittenAndNothingElse) {
  norm(x_, scale_, out_, [](const RmsNormArgs& args) {
    EXPECT_EQ(args.x.f32()[5], 1);
    EXPECT_EQ(args.scale.f32()[2], 2);
    args.out.f32()[1] = 7;
  });
  EXPECT_EQ(out_.f32()[1], 7);
  for (const int i : {0, 2, 3, 4, 5}) EXPECT_TRUE(std::isnan(out_.f32()[i])) << i;
}

TEST_F(HostedOpsTest, TheSameViewIsTheSameThere) {
  norm(x_, scale_, x_, [](const RmsNormArgs& args) {
    EXPECT_EQ(args.x.data, args.out.data);
    args.out.f32()[4] = 5;
  });
  EXPECT_EQ(x_.f32()[4], 5);
  EXPECT_EQ(x_.f32()[3], 1);
}

TEST_F(HostedOpsTest, CopiesAreAlignedAsTheOriginals) {
  norm(x_.view().slice(1, 1), scale_, out_.view().slice(1, 1), [](const RmsNormArgs& args) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(args.x.data) % 256, 3 * sizeof(float));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(args.out.data) % 256, 3 * sizeof(float));
    std::fill_n(args.out.f32(), 3, 0.0f);
  });
}

TEST_F(HostedOpsTest, WritingBesideAViewFails) {
  EXPECT_NONFATAL_FAILURE(
      norm(x_, scale_, out_, [](const RmsNormArgs& args) { args.out.f32()[6] = 0; }),
      "rms_norm: written 0 bytes behind a view of [2, 3]");
  EXPECT_NONFATAL_FAILURE(
      norm(x_, scale_, out_, [](const RmsNormArgs& args) { args.x.f32()[-2] = 0; }),
      "rms_norm: written 8 bytes before a view of [2, 3]");
}

TEST_F(HostedOpsTest, ChangingAnInputFails) {
  EXPECT_NONFATAL_FAILURE(
      norm(x_, scale_, out_, [](const RmsNormArgs& args) { args.scale.f32()[0] = 0; }),
      "rms_norm: changed an input of [3]");
  EXPECT_EQ(scale_.f32()[0], 2);
}

TEST_F(HostedOpsTest, WeightsLieInTheBackendsMemory) {
  Rng rng(1);
  {
    HostedOps ops(std::make_unique<FarOps>(memory_, nullptr));
    const TestWeight a = make_weight(ops, {WeightFormat::bf16, 5, 7, 0}, Fill::integers, rng);
    const TestWeight b = make_weight(ops, {WeightFormat::f32, 4, 7, 0}, Fill::integers, rng);
    EXPECT_TRUE(memory_.holds(a.packed.values));
    EXPECT_TRUE(memory_.holds(b.packed.values));
    EXPECT_EQ(memory_.blocks(), 2u);
    ops.pack(a.plain, a.packed_storage.bytes());
    EXPECT_EQ(memory_.blocks(), 2u) << "the weight that lay in this storage is gone";
    const Guarded x = integer_tensor({3, 7}, rng), got({3, 4}), right({3, 4});
    ops.linear({.x = x, .weight = b.packed, .out = got});
    make_ref_ops()->linear({.x = x, .weight = b.plain, .out = right});
    expect_same_bits(got.values(), right.values(), "linear");
  }
  EXPECT_EQ(memory_.blocks(), 0u);
}

}  // namespace
}  // namespace slip
