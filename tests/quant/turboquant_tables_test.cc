// Signs, code books and the rotation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>

#include "quant/number_formats.h"
#include "tests/quant/turboquant_cases.h"

namespace slip {
namespace {

using ::testing::ElementsAre;

std::string first_signs(KvSide side, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += turbo_signs(side)[i] > 0 ? '+' : '-';
  return text;
}

TEST(TurboSigns, AreThePublishedOnes) {
  EXPECT_EQ(first_signs(KvSide::keys, 32), "++----++----++----+--+++----+--+");
  EXPECT_EQ(first_signs(KvSide::values, 32), "--+--+--+++---+++-+-+-+-++-+-+--");
  const auto minus = [](KvSide side, size_t count) {
    return std::ranges::count(first_signs(side, count), '-');
  };
  EXPECT_EQ(minus(KvSide::keys, 128), 63);
  EXPECT_EQ(minus(KvSide::keys, 256), 130);
  EXPECT_EQ(minus(KvSide::values, 128), 61);
  EXPECT_EQ(minus(KvSide::values, 256), 133);
  EXPECT_EQ(turbo_signs(KvSide::keys).size(), size_t(kMaxTurboDim));
}

TEST(TurboBook, HoldsTheCanonicalTables) {
  EXPECT_THAT(turbo_book(2).levels, ElementsAre(-72, -22, 22, 72));
  EXPECT_THAT(turbo_book(2).thresholds, ElementsAre(-47, 0, 47));
  EXPECT_THAT(turbo_book(3).levels, ElementsAre(-88, -56, -32, -10, 10, 32, 56, 88));
  EXPECT_THAT(turbo_book(3).thresholds, ElementsAre(-72, -44, -21, 0, 21, 44, 72));
  EXPECT_THAT(turbo_book(4).levels,
              ElementsAre(-96, -72, -56, -44, -32, -22, -14, -5, 5, 14, 22, 32, 44, 56, 72, 96));
  EXPECT_THAT(turbo_book(4).thresholds,
              ElementsAre(-84, -64, -50, -38, -27, -18, -9.5f, 0, 9.5f, 18, 27, 38, 50, 64, 84));
}

TEST(TurboBook, LevelsAreExactInEveryNumberFormat) {
  for (const int bits : {2, 3, 4}) {
    for (const int8_t level : turbo_book(bits).levels) {
      EXPECT_EQ(fp8_to_float(float_to_fp8(level)), float(level));
      EXPECT_EQ(f16_to_float(float_to_f16(level)), float(level));
      EXPECT_EQ(bf16_to_float(float_to_bf16(level)), float(level));
    }
  }
}

// The error of a Gaussian of standard deviation 1, by the midpoint rule: the integrand jumps in
// slope only at thresholds.
double gaussian_error(const TurboBook& book) {
  constexpr double kStep = 1e-4, kEnd = 10;
  double sum = 0;
  size_t index = 0;
  for (double z = -kEnd + kStep / 2; z < kEnd; z += kStep) {
    const double y = z * double(book.kappa);
    while (index < book.thresholds.size() && double(book.thresholds[index]) <= y) ++index;
    const double error = z - double(book.levels[index]) / double(book.kappa);
    sum += error * error * std::exp(-z * z / 2) * kStep;
  }
  return sum / std::sqrt(2 * std::numbers::pi);
}

TEST(TurboBook, ErrorAndOuterLevelAreThoseOfAGaussian) {
  const struct {
    int bits;
    double error, outer_level;  // the latter in standard deviations, of the best real-valued book
  } cases[] = {{2, 0.117523, 1.510418}, {3, 0.034641, 2.151946}, {4, 0.009642, 2.732590}};
  for (const auto& expected : cases) {
    const TurboBook& book = turbo_book(expected.bits);
    EXPECT_NEAR(gaussian_error(book), expected.error, 1e-6) << expected.bits;
    EXPECT_NEAR(book.levels.back() / book.kappa, expected.outer_level, 0.02 * expected.outer_level);
  }
}

TEST(TurboBookDeathTest, ThereIsNoneOfFiveBits) {
  EXPECT_DEATH(turbo_book(5), "no code book of 5 bits");
}

template <class Real>
void expect_orthonormal(size_t dim, KvSide side, double tolerance) {
  std::vector<std::vector<Real>> columns;
  for (size_t j = 0; j < dim; ++j) {
    std::vector<Real> x(dim, Real(0));
    x[j] = 1;
    turbo_rotate(std::span(x), side);
    columns.push_back(x);
    turbo_unrotate(std::span(x), side);
    for (size_t i = 0; i < dim; ++i) ASSERT_NEAR(x[i], i == j, tolerance);
  }
  for (size_t i = 0; i < dim; ++i)
    for (size_t j = 0; j < dim; ++j)
      ASSERT_NEAR(dot(columns[i], columns[j]), i == j, tolerance) << i << " " << j;
}

TEST(TurboRotate, IsOrthonormalAndUndone) {
  for (const KvSide side : {KvSide::keys, KvSide::values}) {
    for (const size_t dim : {2, 8, 128, 256}) {
      expect_orthonormal<float>(dim, side, 1e-6);
      expect_orthonormal<double>(dim, side, 1e-14);
    }
  }
}

// H[i][j] = (-1)^popcount(i & j), signs on the input side.
TEST(TurboRotate, IsHadamardInNaturalOrderAfterTheSigns) {
  constexpr size_t kDim = 64;
  Gaussian random(1);
  const std::vector<float> x = random.vector(kDim);
  const std::vector<float> t = rotated(x, KvSide::values);
  for (size_t i = 0; i < kDim; ++i) {
    double sum = 0;
    for (size_t j = 0; j < kDim; ++j)
      sum += (std::popcount(i & j) % 2 ? -1.0 : 1.0) * turbo_signs(KvSide::values)[j] * x[j];
    EXPECT_NEAR(t[i], sum / 8, 1e-5);
  }
}

TEST(TurboRotateDeathTest, SizesArePowersOfTwo) {
  std::vector<float> x(96, 1.0f);
  EXPECT_DEATH(turbo_rotate(x, KvSide::keys), "no Hadamard rotation of 96 values");
}

}  // namespace
}  // namespace slip
