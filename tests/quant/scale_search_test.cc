#include "quant/scale_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "quant/int4_loops.h"
#include "quant/number_formats.h"
#include "tests/quant/random_values.h"

namespace slip {
namespace {

int int4_code(float value, double scale) { return int(int4_code_of(value, scale)); }

double error_of(std::span<const float> group, double scale) {
  double sum = 0;
  for (const float value : group) {
    const double off = int4_code(value, scale) * scale - value;
    sum += off * off;
  }
  return sum;
}

// The rule of scale_search.h, word by word.
double scale_by_the_rule(std::span<const float> group) {
  double peak = 8e-5;
  for (const float value : group) peak = std::max(peak, std::fabs(double(value)));
  double best = INFINITY, scale = 0;
  const auto attempt = [&](double stored) {
    const double error = error_of(group, stored);
    if (!(error < best)) return;
    best = error;
    scale = stored;
  };
  for (int i = 0; i < kScaleSteps; ++i)
    for (const double sign : {1.0, -1.0})
      attempt(int4_scale_as_stored(sign * peak / (5.5 + 0.08 * i)));
  for (int i = 0; i < 3; ++i) {
    double products = 0, squares = 0;
    for (const float value : group) {
      const double code = int4_code(value, scale);
      products += value * code;
      squares += code * code;
    }
    attempt(int4_scale_as_stored(products / std::max(squares, 1e-30)));
  }
  return scale;
}

TEST(ScaleSearch, FollowsTheRule) {
  for (const size_t size : {32, 64, 128})
    for (uint32_t seed = 0; seed < 300; ++seed) {
      const std::vector<float> group = random_values(size, seed);
      EXPECT_EQ(f16_to_float(best_int4_scale(group)), scale_by_the_rule(group)) << seed;
    }
}

TEST(ScaleSearch, EveryInstructionSetFindsTheSameErrors) {
  const std::vector<float> group = random_values(128, 1);
  std::vector<float> inverses;
  for (int i = 0; i < kScaleSteps; ++i) inverses.push_back(float((5.5 + 0.08 * i) / 0.05));
  std::vector<float> portable(2 * kScaleSteps), best(2 * kScaleSteps);
  kPortableInt4Loops.candidate_errors(group.data(), 128, {inverses.data(), portable.data(), 0});
  int4_loops().candidate_errors(group.data(), 128, {inverses.data(), best.data(), 0});
  for (size_t i = 0; i < best.size(); ++i) EXPECT_NEAR(best[i], portable[i], 1e-4 * portable[i]);
  for (const double scale : {0.003, -0.0041})
    EXPECT_EQ(int4_loops().sums(group.data(), 128, scale).error,
              kPortableInt4Loops.sums(group.data(), 128, scale).error);
}

// The examples of symmetric rounding: the largest magnitude goes to code -8, whatever its sign.
TEST(ScaleSearch, SignOfTheScale) {
  std::vector<float> negative(32, 0.0f), positive(32, 0.0f);
  negative[0] = -1, negative[1] = 0.5, negative[2] = 0.25;
  positive[0] = 1, positive[1] = -0.5;
  const float up = f16_to_float(best_int4_scale(negative));
  EXPECT_EQ(up, 0.125f);
  EXPECT_EQ(int4_code(-1, up), -8);
  EXPECT_EQ(int4_code(0.5, up), 4);
  EXPECT_EQ(int4_code(0.25, up), 2);
  EXPECT_EQ(error_of(positive, f16_to_float(best_int4_scale(positive))), 0);
}

TEST(ScaleSearch, NothingAndTooMuch) {
  const float least = f16_to_float(best_int4_scale(std::vector<float>(32, 0.0f)));
  EXPECT_GE(std::fabs(least), 0.9e-5f);  // never zero: loaders divide by nothing, but kernels may
  EXPECT_EQ(int4_code(0, least), 0);
  std::vector<float> large(32, 1e7f);
  EXPECT_TRUE(std::isinf(f16_to_float(best_int4_scale(large))));
}

}  // namespace
}  // namespace slip
