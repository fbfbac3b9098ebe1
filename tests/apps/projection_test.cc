#include "slipstream/bench/projection.h"

#include <gtest/gtest.h>

namespace slip {
namespace {

TEST(Projection, BytesMoveAtTheOtherSpeedAndTheRestStays) {
  const ProjectedMachine there{"slow", "slow memory", 100e9};
  // 10 GB at 1,000 GB/s take 10 of 14 ms; the other 4 stay.
  EXPECT_DOUBLE_EQ(projected_seconds(0.014, 10e9, 1000e9, there), 0.004 + 0.1);
  // Faster than memory allows: the bytes came from a cache, and nothing is left over.
  EXPECT_DOUBLE_EQ(projected_seconds(0.005, 10e9, 1000e9, there), 0.1);
}

TEST(Projection, UnknownMachinesAreRefusedWithTheKnownOnes) {
  EXPECT_FALSE(find_projected_machine("").value().has_value());
  EXPECT_EQ(find_projected_machine("gb10").value()->read_bytes_per_second, 233e9);
  const auto unknown = find_projected_machine("gb11");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.failure().message.find("gb10"), std::string::npos);
}

}  // namespace
}  // namespace slip
