// Beginnings of texts are found by content, longest first, and forgotten by age.
#include "cache/prefix_index.h"

#include <gtest/gtest.h>

#include <numeric>

namespace slip {
namespace {

std::vector<int32_t> numbers(size_t count, int32_t first = 0) {
  std::vector<int32_t> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

class PrefixIndexTest : public ::testing::Test {
 protected:
  bool add(std::span<const int32_t> tokens, int32_t sequence, std::string_view salt = {},
           std::span<const int64_t> cuts = {}) {
    return index_.add({salt, tokens, cuts}, SequenceId(sequence));
  }
  // The sequence and its length, or {-1, 0}.
  std::pair<int32_t, int64_t> find(std::span<const int32_t> tokens, int64_t limit,
                                   std::string_view salt = {}, std::span<const int64_t> cuts = {}) {
    const auto found = index_.find({salt, tokens, cuts}, limit);
    return found ? std::pair(int32_t(found->sequence), found->length) : std::pair(-1, int64_t{0});
  }
  static constexpr std::pair<int32_t, int64_t> kNothing{-1, 0};

  const std::vector<int32_t> text_ = numbers(100);
  PrefixIndex index_;
};

TEST_F(PrefixIndexTest, FindsTheLongestBeginning) {
  const std::span<const int32_t> text(text_);
  EXPECT_EQ(find(text, 100), kNothing);
  EXPECT_TRUE(add(text.first(10), 1));
  EXPECT_TRUE(add(text.first(60), 2));
  EXPECT_TRUE(add(text.first(30), 3));
  EXPECT_EQ(find(text, 100), std::pair(2, int64_t{60}));
  EXPECT_EQ(find(text, 60), std::pair(2, int64_t{60}));
  EXPECT_EQ(find(text, 59), std::pair(3, int64_t{30}));
  EXPECT_EQ(find(text.first(29), 29), std::pair(1, int64_t{10}));
  EXPECT_EQ(find(text.first(9), 9), kNothing);
  std::vector<int32_t> other = text_;
  other[40] = 7;
  EXPECT_EQ(find(other, 100), std::pair(3, int64_t{30}));
  EXPECT_EQ(find(numbers(100, 1), 100), kNothing);
}

TEST_F(PrefixIndexTest, SaltsShareNothing) {
  EXPECT_TRUE(add(text_, 1, "a"));
  EXPECT_TRUE(add(text_, 2, "b"));
  EXPECT_EQ(find(text_, 100, "a"), std::pair(1, int64_t{100}));
  EXPECT_EQ(find(text_, 100, "b"), std::pair(2, int64_t{100}));
  EXPECT_EQ(find(text_, 100), kNothing);
}

TEST_F(PrefixIndexTest, WhereCutsMatterTheyAreCompared) {
  const std::span<const int32_t> text(text_);
  const std::vector<int64_t> cuts = {20, 50, 90}, others = {20, 40, 50, 90};
  EXPECT_TRUE(add(text.first(50), 1, "", std::span(cuts).first(2)));
  EXPECT_EQ(find(text, 100, "", cuts), std::pair(1, int64_t{50}));
  EXPECT_EQ(find(text, 100, "", others), kNothing) << "it would have been computed in other steps";
  EXPECT_EQ(find(text, 100), kNothing);
  EXPECT_TRUE(add(text.first(20), 2, "", std::span(cuts).first(1)));
  EXPECT_EQ(find(text, 100, "", others), std::pair(2, int64_t{20}));
}

TEST_F(PrefixIndexTest, TheSameTextIsRememberedOnce) {
  EXPECT_TRUE(add(text_, 1));
  EXPECT_FALSE(add(text_, 2));
  EXPECT_EQ(index_.size(), 1);
  EXPECT_TRUE(index_.contains({"", text_}));
}

TEST_F(PrefixIndexTest, TheOneNotUsedForLongestGoesFirst) {
  const std::vector<int32_t> a = numbers(5, 10), b = numbers(5, 20), c = numbers(5, 30);
  add(a, 1);
  add(b, 2);
  add(c, 3);
  find(a, 5);
  EXPECT_FALSE(add(b, 4)) << "a use, too";
  EXPECT_EQ(index_.take_oldest(), SequenceId(3));
  EXPECT_EQ(index_.take(SequenceId(2)), SequenceId(2));
  EXPECT_EQ(find(b, 5), kNothing);
  EXPECT_EQ(index_.take_oldest(), SequenceId(1));
  EXPECT_EQ(index_.take_oldest(), std::nullopt);
}

}  // namespace
}  // namespace slip
