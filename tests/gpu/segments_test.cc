// How CUDA's attention divides a context.
#include <gtest/gtest.h>

#include "kernels/cuda/attention.h"

namespace slip {
namespace {

TEST(Segments, HoldEveryPositionOnce) {
  for (const int64_t window : {0, 512}) {
    const Segments segments = Segments::of_layer(window);
    for (int64_t position = 0; position < int64_t{1} << 20; ++position) {
      const int64_t segment = segments.of(position);
      ASSERT_LE(segments.begin(segment), position);
      ASSERT_GT(segments.begin(segment + 1), position);
      ASSERT_LE(segments.count(position), segments.count(position + 1)) << position;
    }
  }
}

TEST(Segments, AreAsManyForAWindowWhereverItIs) {
  constexpr int64_t kContext = 1 << 16;
  for (const int64_t window : {1, 64, 512, 1024, 2048, 2049, 4096}) {
    const Segments segments = Segments::of_layer(window);
    for (int64_t start = 0; start + kSplitRows <= kContext; ++start) {
      const int64_t first = segments.first_seen(start, window);
      ASSERT_LE(segments.begin(first), std::max<int64_t>(start + 1 - window, 0));
      ASSERT_GT(segments.begin(first + 1), std::max<int64_t>(start + 1 - window, 0));
      ASSERT_LE(segments.of(start + kSplitRows - 1) - first + 1, Segments::most(window, kContext))
          << "window " << window << ", start " << start;
    }
  }
  EXPECT_EQ(Segments::most(1024, kContext), 14);
  EXPECT_EQ(Segments::most(1024, 256), 4);
  // Scratch is as large as a layer without a window may need.
  for (int64_t context = 256; context <= kContext; context *= 2)
    EXPECT_LE(Segments::most(2048, context), Segments{}.count(context));
}

TEST(Segments, AreTwiceAsLongFromTheEndOfATierOn) {
  const Segments segments;
  EXPECT_EQ(segments.count(0), 0);
  struct Tier {
    int64_t begin, first, length;
  };
  for (const Tier& tier :
       {Tier{0, 0, 64}, {512, 8, 128}, {8192, 68, 256}, {16384, 100, 512}, {65536, 196, 1024}}) {
    EXPECT_EQ(segments.count(tier.begin), tier.first);
    EXPECT_EQ(segments.begin(tier.first), tier.begin);
    EXPECT_EQ(segments.begin(tier.first + 1), tier.begin + tier.length);
  }
}

}  // namespace
}  // namespace slip
