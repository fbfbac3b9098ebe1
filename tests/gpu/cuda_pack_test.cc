// Packing to memory that the GPU is not done with.
#include <gtest/gtest.h>

#include "kernels/cuda_ops.h"
#include "quant/weight.h"
#include "tensor/buffer.h"

namespace slip {
namespace {

TEST(CudaPack, WaitsForWhatClearsItsPlace) {
  const auto made = make_cuda_ops(0);
  if (!made.ok()) GTEST_SKIP() << made.failure().message;
  Ops& ops = *made.value();
  constexpr size_t kLarge = size_t{8} << 30;  // clearing it takes milliseconds, packing does not
  if (ops.memory().free_bytes() < kLarge + (size_t{1} << 30)) GTEST_SKIP() << "too little memory";

  const WeightInfo info{WeightFormat::bf16, 16, 64, 0};
  const Buffer plain_storage(host_memory(), plain_bytes(info));
  for (std::byte& byte : plain_storage.bytes()) byte = std::byte{0x3f};
  const Weight plain = plain_weight(info, plain_storage.data());
  const size_t bytes = ops.packed_bytes(info);
  const Buffer first(ops.memory(), bytes);
  ops.pack(plain, first.bytes());  // lanes take their memory, which waits for everything

  const Buffer large(ops.memory(), kLarge);
  ops.pack(plain, large.bytes().last(bytes));
  std::vector<std::byte> expected(bytes), found(bytes);
  ops.memory().download(expected.data(), first.data(), bytes);
  ops.memory().download(found.data(), large.data() + large.size() - bytes, bytes);
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace slip
