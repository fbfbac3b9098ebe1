#include "tensor/buffer.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

namespace slip {
namespace {

TEST(Buffer, IsZeroedAndAligned) {
  for (const size_t bytes : {size_t{1}, size_t{100}, size_t{4096}, size_t{3} << 20}) {
    const Buffer buffer(host_memory(), bytes);
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
    for (const std::byte value : buffer.bytes()) ASSERT_EQ(value, std::byte{0});
  }
}

TEST(Buffer, EmptyHasNoData) {
  EXPECT_EQ(Buffer(host_memory(), 0).data(), nullptr);
  EXPECT_EQ(Buffer().size(), 0u);
}

TEST(Buffer, MovesItsBytes) {
  Buffer first(host_memory(), 64);
  std::byte* data = first.data();
  data[5] = std::byte{7};
  Buffer second(std::move(first));
  EXPECT_EQ(second.data(), data);
  Buffer third(host_memory(), 8);
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size(), 64u);
  EXPECT_EQ(third.data()[5], std::byte{7});
}

TEST(Buffer, ViewsAreCheckedWindows) {
  const Buffer buffer(host_memory(), 64);
  EXPECT_EQ(buffer.view(DType::f32, {2, 4}, 32).data, buffer.data() + 32);
  EXPECT_DEATH(buffer.view(DType::f32, {2, 4}, 36), "exceeds a buffer of 64");
}

TEST(NoAllocScopeDeathTest, StopsABufferInsideAStep) {
  EXPECT_DEATH(
      {
        const NoAllocScope outer;
        { const NoAllocScope inner; }
        const Buffer buffer(host_memory(), 10);
      },
      "a Buffer of 10 bytes was made inside a step");
}

TEST(NoAllocScope, EndsAndBelongsToOneThread) {
  { const NoAllocScope scope; }
  EXPECT_FALSE(NoAllocScope::active());
  const Buffer after(host_memory(), 10);
  const NoAllocScope scope;
  EXPECT_TRUE(NoAllocScope::active());
  std::thread([] { const Buffer elsewhere(host_memory(), 10); }).join();
}

}  // namespace
}  // namespace slip
