// What the codec costs, on average: the tables that the design was chosen by.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/quant/turboquant_cases.h"

namespace slip {
namespace {

constexpr int kVectors = 20000;

struct Expected {
  size_t dim;
  int bits;
  double error, worst;                  // relative squared error: mean, 99.9 percentile
  double orthogonal_error, half_error;  // dim x squared error of <x, y> at 0 and at 1/2
};

void PrintTo(const Expected& expected, std::ostream* out) {
  *out << expected.dim << " values, " << expected.bits << " bits";
}

constexpr Expected kExpected[] = {
    {128, 2, 0.13055, 0.213, 0.132, 0.0994},   {128, 3, 0.03479, 0.0741, 0.0353, 0.0265},
    {128, 4, 0.00939, 0.0288, 0.0092, 0.0069}, {256, 2, 0.13192, 0.186, 0.133, 0.0996},
    {256, 3, 0.03534, 0.0597, 0.0354, 0.0266}, {256, 4, 0.00957, 0.0222, 0.0095, 0.0071},
};

class TurboStatistics : public ::testing::TestWithParam<Expected> {};

INSTANTIATE_TEST_SUITE_P(Sizes, TurboStatistics, ::testing::ValuesIn(kExpected),
                         [](const auto& instance) {
                           return "d" + std::to_string(instance.param.dim) + "_b" +
                                  std::to_string(instance.param.bits);
                         });

TEST_P(TurboStatistics, ReconstructionError) {
  const Expected& expected = GetParam();
  Gaussian random(1);
  std::vector<double> errors;
  for (int i = 0; i < kVectors; ++i) {
    const std::vector<float> t = rotated(random.vector(expected.dim));
    const Coded coded = code(t, expected.bits);
    errors.push_back(relative_error(t, coded.decoded));
    // What makes inner products unbiased; bf16 rounds the scale by at most 1/256.
    ASSERT_NEAR(dot(t, coded.decoded) / dot(t, t), 1, 0.00391);
  }
  double sum = 0;
  for (const double error : errors) sum += error;
  EXPECT_NEAR(sum / kVectors, expected.error, 0.015 * expected.error);
  std::ranges::sort(errors);
  EXPECT_LT(errors[size_t(kVectors * 0.999)], 1.1 * expected.worst);
}

void normalise(std::vector<float>& x) {
  const float inverse = float(1 / std::sqrt(dot(x, x)));
  for (float& value : x) value *= inverse;
}

// Unit vectors x and y with <x, y> = 0, then 1/2.
TEST_P(TurboStatistics, InnerProductsAreUnbiased) {
  const Expected& expected = GetParam();
  Gaussian random(2);
  double orthogonal_error = 0, half_error = 0, bias = 0;
  for (int i = 0; i < kVectors; ++i) {
    std::vector<float> x = random.vector(expected.dim), z = random.vector(expected.dim);
    normalise(x);
    const float overlap = float(dot(x, z));
    for (size_t j = 0; j < x.size(); ++j) z[j] -= overlap * x[j];
    normalise(z);
    turbo_rotate(x, KvSide::keys);
    turbo_rotate(z, KvSide::keys);
    const Coded coded = code(x, expected.bits);
    const double at_zero = dot(z, coded.decoded);
    const double at_half = 0.5 * (dot(x, coded.decoded) - 1) + std::sqrt(0.75) * at_zero;
    orthogonal_error += at_zero * at_zero;
    half_error += at_half * at_half;
    bias += at_half;
  }
  const double per_vector = double(expected.dim) / kVectors;
  EXPECT_LT(std::fabs(bias / kVectors), 0.001);
  EXPECT_NEAR(orthogonal_error * per_vector, expected.orthogonal_error,
              0.05 * expected.orthogonal_error);
  EXPECT_NEAR(half_error * per_vector, expected.half_error, 0.05 * expected.half_error);
}

// Keys often have an offset that all dimensions share. A plain Hadamard matrix, as others use,
// gathers it in one value that no code book reaches.
TEST(TurboSignsAblation, PlainHadamardIsBadWithACommonOffset) {
  for (const size_t dim : {size_t{128}, size_t{256}}) {
    Gaussian random(3);
    double with_signs = 0, without = 0;
    for (int i = 0; i < 1000; ++i) {
      std::vector<float> x = random.vector(dim), unsigned_x = x;
      for (size_t j = 0; j < dim; ++j) {
        x[j] += 2;
        unsigned_x[j] = x[j] * turbo_signs(KvSide::keys)[j];  // the rotation's signs cancel
      }
      const std::vector<float> t = rotated(x), plain = rotated(unsigned_x);
      with_signs += relative_error(t, code(t, 4).decoded) / 1000;
      without += relative_error(plain, code(plain, 4).decoded) / 1000;
    }
    EXPECT_LT(with_signs, 0.0125) << dim;  // no worse than all ones
    EXPECT_GT(without, 20 * with_signs) << dim;
  }
}

// KL divergence of attention over 4096 independent keys whose scores have standard deviation 1:
// half the variance of the error of a score, D / (1 - D).
TEST(TurboAttention, DivergenceFollowsTheLaw) {
  constexpr size_t kDim = 256, kKeys = 4096, kQueries = 8;
  Gaussian random(4);
  std::vector<std::vector<float>> keys;
  for (size_t i = 0; i < kKeys; ++i) keys.push_back(rotated(random.vector(kDim)));
  for (const auto& [bits, error] : {std::pair{2, 0.117523}, {3, 0.034641}, {4, 0.009642}}) {
    std::vector<Coded> coded;
    for (const auto& key : keys) coded.push_back(code(key, bits));
    double divergence = 0;
    for (size_t n = 0; n < kQueries; ++n) {
      const std::vector<float> query = random.vector(kDim);
      const double scale = 1 / std::sqrt(dot(query, query));
      std::vector<double> exact, estimate;
      double exact_sum = 0, estimate_sum = 0;
      for (size_t i = 0; i < kKeys; ++i) {
        exact.push_back(dot(query, keys[i]) * scale);
        estimate.push_back(dot(query, coded[i].decoded) * scale);
        exact_sum += std::exp(exact.back());
        estimate_sum += std::exp(estimate.back());
      }
      const double shift = std::log(estimate_sum / exact_sum);
      for (size_t i = 0; i < kKeys; ++i)
        divergence += std::exp(exact[i]) / exact_sum * (exact[i] - estimate[i] + shift) / kQueries;
    }
    const double law = 0.5 * error / (1 - error);
    EXPECT_NEAR(divergence, law, 0.1 * law) << bits;
  }
}

}  // namespace
}  // namespace slip
