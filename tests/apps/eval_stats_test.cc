#include <gtest/gtest.h>

#include <cmath>

#include "slipstream/common/numbers.h"
#include "slipstream/eval/eval.h"
#include "slipstream/eval/stats.h"
#include "slipstream/eval/windows.h"

namespace slip {
namespace {

TEST(BestToken, IsTheLowestOfEquals) {
  EXPECT_EQ(best_token(std::vector<float>{1, 3, 3, 2}), 1);
  EXPECT_EQ(best_token(std::vector<float>{-5}), 0);
}

TEST(Distribution, SharesOfLogits) {
  const std::vector<float> logits{std::log(1.0f), std::log(2.0f), std::log(5.0f)};
  EXPECT_NEAR(Distribution(logits).negative_log_likelihood(1), std::log(4.0), 1e-6);
  // Logits of any height, whose exponentials no double holds.
  const std::vector<float> high{3000, 3000, -3000};
  EXPECT_NEAR(Distribution(high).negative_log_likelihood(0), std::log(2.0), 1e-9);
  EXPECT_NEAR(Distribution(high).negative_log_likelihood(2), 6000 + std::log(2.0), 1e-9);
}

TEST(KlDivergence, CountsFromTheReference) {
  const std::vector<float> fair{0, 0}, biased{0, std::log(3.0f)};
  const double expected = 0.5 * std::log(0.5 / 0.25) + 0.5 * std::log(0.5 / 0.75);
  EXPECT_NEAR(kl_divergence(Distribution(fair), Distribution(biased)), expected, 1e-7);
  const double other_way = 0.25 * std::log(0.25 / 0.5) + 0.75 * std::log(0.75 / 0.5);
  EXPECT_NEAR(kl_divergence(Distribution(biased), Distribution(fair)), other_way, 1e-7);
  // The same distribution, though not the same logits.
  const std::vector<float> shifted{7, 7};
  EXPECT_NEAR(kl_divergence(Distribution(fair), Distribution(shifted)), 0, 1e-15);
}

TEST(Quantile, IsOneOfTheValues) {
  std::vector<double> values;
  for (int i = 100; i > 0; --i) values.push_back(i);
  EXPECT_EQ(quantile(values, 0.99), 99);
  EXPECT_EQ(quantile(values, 0.5), 50);
  EXPECT_EQ(quantile(values, 1), 100);
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile({4}, 0.99), 4);
}

TEST(Windows, LeaveOutWhatPredictsNothing) {
  const std::vector<std::vector<int32_t>> lists{{1, 2, 3, 4}, {}, {5}, {6, 7, 8, 9, 10}};
  const auto windows = windows_of(lists, 3);
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_EQ(windows[0].size(), 3u);
  EXPECT_EQ(windows[1].front(), 6);
  EXPECT_EQ(windows[2].size(), 2u);
  EXPECT_EQ(windows[2].front(), 9);
}

}  // namespace
}  // namespace slip
