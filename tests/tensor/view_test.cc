#include "tensor/view.h"

#include <gtest/gtest.h>

#include <vector>

namespace slip {
namespace {

View view_of(std::vector<float>& values, const Shape& shape) {
  return {reinterpret_cast<std::byte*>(values.data()), DType::f32, shape};
}

TEST(View, SliceTakesRowsOfTheOutermostDimension) {
  std::vector<float> values(24);
  for (size_t i = 0; i < values.size(); ++i) values[i] = float(i);
  for (const Shape& shape : {Shape{24}, Shape{4, 6}, Shape{4, 3, 2}, Shape{4, 1, 3, 2}}) {
    const View view = view_of(values, shape);
    const int64_t inner = 24 / shape[0];
    const View part = view.slice(1, 2);
    EXPECT_EQ(part.f32()[0], float(inner)) << shape;
    EXPECT_EQ(part.count(), 2 * inner);
    EXPECT_EQ(part.shape.rank(), shape.rank());
    EXPECT_EQ(part.shape[0], 2);
    EXPECT_EQ(part.bytes(), size_t(2 * inner) * 4);
  }
  const View rows = view_of(values, {4, 6});
  EXPECT_EQ(rows.first(3).shape, (Shape{3, 6}));
  EXPECT_EQ(rows.slice(4, 0).count(), 0);
}

TEST(View, SliceOfSmallTypesCountsBytes) {
  std::byte bytes[16];
  const View view{bytes, DType::bf16, {4, 2}};
  EXPECT_EQ(view.slice(3, 1).data, bytes + 12);
  EXPECT_EQ(view.bytes(), 16u);
}

TEST(View, ReshapedKeepsTheValues) {
  std::vector<float> values(12);
  const View view = view_of(values, {3, 4}).reshaped({2, 3, 2});
  EXPECT_EQ(view.shape, (Shape{2, 3, 2}));
  EXPECT_EQ(view.f32(), values.data());
}

TEST(Shape, EqualityNeedsTheSameRank) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{2, 3, 1}));
  EXPECT_FALSE((Shape{2}) == (Shape{2, 0}));
  EXPECT_EQ(Shape{}.count(), 1);
}

TEST(ViewDeathTest, StopsOnWhatIsNotThere) {
  std::vector<float> values(12);
  const View view = view_of(values, {3, 4});
  EXPECT_DEATH(view.slice(2, 2), "slice \\[2, 4\\) of \\[3, 4\\]");
  EXPECT_DEATH(view.slice(-1, 1), "slice");
  EXPECT_DEATH(view.reshaped({5}), "cannot view \\[3, 4\\] as \\[5\\]");
  EXPECT_DEATH(view.i32(), "view holds f32, asked for i32");
}

}  // namespace
}  // namespace slip
