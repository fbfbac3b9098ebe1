#include "quant/scale_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "quant/int4_descent.h"
#include "quant/int4_group.h"
#include "quant/int4_loops.h"
#include "quant/number_formats.h"
#include "tensor/buffer.h"

namespace slip {
namespace {

std::vector<float> random_values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = bf16_to_float(float_to_bf16(0.02f * normal(random)));
  return values;
}

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

// A matrix with correlated inputs, as activations are.
struct Case {
  static constexpr int64_t kOut = 24, kIn = 64, kRows = 512;
  std::vector<float> weights = random_values(kOut * kIn, 5);
  Gram gram;
  WeightInfo info{WeightFormat::int4_group, kOut, kIn, 32};
  Buffer storage{host_memory(), plain_bytes(info)};
  Weight rounded = plain_weight(info, storage.data());
  Weight from;

  Case() {
    const std::vector<float> noise = random_values(kRows * kIn, 6);
    std::vector<float> x(noise);
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t i = 1; i < kIn; ++i)
        x[size_t(row * kIn + i)] += 0.7f * x[size_t(row * kIn + i - 1)];
    gram.inputs = kIn;
    gram.rows = kRows;
    gram.products.resize(kIn * kIn);
    int4_loops().gram(gram.products.data(), x.data(),
                      {.rows = kRows, .inputs = kIn, .begin = 0, .end = kIn});
    for (int64_t i = 0; i < kIn; ++i)
      for (int64_t j = 0; j < i; ++j)
        gram.products[size_t(i * kIn + j)] = gram.products[size_t(j * kIn + i)];
    for (int64_t i = 0; i < kIn; ++i) {
      double sum = 0;
      for (int64_t row = 0; row < kRows; ++row)
        sum += x[size_t(row * kIn + i)] * x[size_t(row * kIn)];
      EXPECT_NEAR(gram.products[size_t(i)], sum, 1e-5);
    }
    from.info = {WeightFormat::f32, kOut, kIn, 0};
    from.values = View{reinterpret_cast<std::byte*>(weights.data()), DType::f32, {kOut, kIn}};
    EXPECT_TRUE(quantize_int4_groups(from, rounded, 0).ok());
  }

  double output_error() const {
    double sum = 0;
    for (int64_t row = 0; row < kOut; ++row)
      for (int64_t i = 0; i < kIn; ++i)
        for (int64_t j = 0; j < kIn; ++j)
          sum += (weight_at(rounded, row, i) - weight_at(from, row, i)) *
                 gram.products[size_t(i * kIn + j)] *
                 (weight_at(rounded, row, j) - weight_at(from, row, j));
    return sum;
  }
};

TEST(Int4Descent, LowersTheErrorOfOutputs) {
  Case one;
  const double nearest = one.output_error();
  const DescentErrors errors =
      descend({one.from, one.rounded, 0, Case::kOut}, DescentGram(one.gram, 0), {});
  EXPECT_NEAR(errors.before, nearest, 1e-3 * nearest);
  EXPECT_NEAR(errors.after, one.output_error(), 1e-2 * nearest);
  EXPECT_LT(errors.after, 0.6 * nearest);
}

// No single code, and no scale, could be changed for the better.
TEST(Int4Descent, EndsWhereNoStepHelps) {
  Case one;
  (void)descend({one.from, one.rounded, 0, 4}, DescentGram(one.gram, 0), {.sweeps = 50});
  auto* codes = one.rounded.values.as<uint8_t>(DType::u8);
  const double end = one.output_error();
  for (int64_t byte = 0; byte < 4 * Case::kIn / 2; ++byte) {
    const uint8_t kept = codes[byte];
    if ((kept & 15) < 15) {
      codes[byte] = uint8_t(kept + 1);
      EXPECT_GE(one.output_error(), end * (1 - 1e-4)) << byte;
    }
    if ((kept & 15) > 0) {
      codes[byte] = uint8_t(kept - 1);
      EXPECT_GE(one.output_error(), end * (1 - 1e-4)) << byte;
    }
    codes[byte] = kept;
  }
}

}  // namespace
}  // namespace slip
