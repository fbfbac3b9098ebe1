// Steps that CUDA records and replays, on the first GPU and on others, from any thread.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "kernels/cuda_ops.h"
#include "tensor/buffer.h"

namespace slip {
namespace {

constexpr int64_t kMostRows = 8, kDim = 128, kShapes = 200;

// x = silu(x) x of the first rows, in a step of its own kind.
class SquaringSteps {
 public:
  explicit SquaringSteps(Ops& ops)
      : ops_(ops), data_(ops.memory(), size_t(kMostRows * kDim) * sizeof(float)) {}

  void set(float value) {
    const std::vector<float> values(size_t(kMostRows * kDim), value);
    ops_.memory().upload(data_.data(), values.data(), data_.size());
  }

  void run(int64_t kind, int64_t rows) {
    const Span span{.first_row = 0, .rows = rows};
    const View x{data_.data(), DType::f32, {rows, kDim}};
    const auto body = [&] { ops_.gated_mul({.gate = x, .up = x, .out = x}); };
    ops_.run_step({.owner = this, .kind = kind, .rows = rows}, {&span, 1}, body);
  }

  std::vector<float> values() const {
    std::vector<float> values(size_t(kMostRows * kDim));
    ops_.memory().download(values.data(), data_.data(), data_.size());
    return values;
  }

 private:
  Ops& ops_;
  Buffer data_;
};

// More shapes than are kept, met again and again: each replay does what its step does.
TEST(CudaRecordedSteps, AreMadeAnewWhenTheyWereForgotten) {
  const auto made = make_cuda_ops(0);
  if (!made.ok()) GTEST_SKIP() << made.failure().message;
  SquaringSteps recorded(*made.value()), direct(*made.value());
  for (int time = 0; time < 3; ++time)
    for (int64_t shape = 0; shape < kShapes; ++shape) {
      // Some come often, most are forgotten in between.
      const int64_t kind = shape % 3 == 0 ? shape % 9 : shape, rows = 1 + kind % kMostRows;
      recorded.set(1.5f);
      recorded.run(kind, rows);
      direct.set(1.5f);
      direct.run(int64_t{1000} * (time * kShapes + shape + 1), rows);  // never met before
      ASSERT_EQ(recorded.values(), direct.values()) << "time " << time << ", shape " << shape;
    }
}

TEST(CudaDevices, WorkFromAnyThread) {
  const auto first = make_cuda_ops(0), second = make_cuda_ops(1);
  if (!first.ok()) GTEST_SKIP() << first.failure().message;
  if (!second.ok()) GTEST_SKIP() << "one GPU";
  SquaringSteps here(*first.value()), there(*second.value());
  std::thread([&] {  // as a server's, which begins with the first device
    for (int time = 0; time < 3; ++time) {
      here.set(2), there.set(3);
      here.run(0, kMostRows), there.run(0, kMostRows);
    }
  })
      .join();
  EXPECT_NE(here.values(), there.values());
  SquaringSteps expected(*first.value());
  expected.set(3);
  expected.run(0, kMostRows);
  EXPECT_EQ(there.values(), expected.values());
}

}  // namespace
}  // namespace slip
