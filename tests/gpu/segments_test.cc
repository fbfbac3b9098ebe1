// How CUDA's attention divides a context.
#include <gtest/gtest.h>

#include "kernels/cuda/attention.h"

namespace slip {
namespace {

TEST(Segments, HoldEveryPositionOnce) {
  for (int64_t position = 0; position < int64_t{1} << 20; ++position) {
    const int64_t segment = Segments::of(position);
    ASSERT_LE(Segments::begin(segment), position);
    ASSERT_GT(Segments::begin(segment + 1), position);
    ASSERT_LE(Segments::count(position), Segments::count(position + 1)) << position;
  }
}

TEST(Segments, AreTwiceAsLongFromTheEndOfATierOn) {
  EXPECT_EQ(Segments::count(0), 0);
  struct Tier {
    int64_t begin, first, length;
  };
  for (const Tier& tier :
       {Tier{0, 0, 64}, {512, 8, 128}, {8192, 68, 256}, {16384, 100, 512}, {65536, 196, 1024}}) {
    EXPECT_EQ(Segments::count(tier.begin), tier.first);
    EXPECT_EQ(Segments::begin(tier.first), tier.begin);
    EXPECT_EQ(Segments::begin(tier.first + 1), tier.begin + tier.length);
  }
}

}  // namespace
}  // namespace slip
