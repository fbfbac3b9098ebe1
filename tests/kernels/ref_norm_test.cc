// The reference's norms, activations and routing against values computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "kernels/ref/ref_ops.h"

namespace slip {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

View view_of(std::vector<float>& values, const Shape& shape) {
  EXPECT_EQ(int64_t(values.size()), shape.count());
  return {reinterpret_cast<std::byte*>(values.data()), DType::f32, shape};
}

View view_of(std::vector<int32_t>& values, const Shape& shape) {
  return {reinterpret_cast<std::byte*>(values.data()), DType::i32, shape};
}

TEST(RefRmsNorm, DividesByTheRootMeanSquare) {
  std::vector<float> x = {3, 4, 0, 0, 1, 1, 1, 1}, scale = {1, 2, 3, 4}, out(8);
  make_ref_ops()->rms_norm({.x = view_of(x, {2, 4}),
                            .scale = view_of(scale, {4}),
                            .out = view_of(out, {2, 4}),
                            .eps = 0});
  // sqrt(25 / 4) = 2.5
  EXPECT_THAT(out, ElementsAre(FloatEq(1.2f), FloatEq(3.2f), 0, 0, 1, 2, 3, 4));
}

TEST(RefRmsNorm, EpsilonIsInsideTheRoot) {
  std::vector<float> x = {0, 3}, scale = {1, 1}, out(2);
  make_ref_ops()->rms_norm({.x = view_of(x, {1, 2}),
                            .scale = view_of(scale, {2}),
                            .out = view_of(out, {1, 2}),
                            .eps = 4.5f});
  EXPECT_THAT(out, ElementsAre(0, 1));  // 3 / sqrt(4.5 + 4.5)
}

TEST(RefGatedRmsNorm, NormsEachHeadThenGates) {
  std::vector<float> x = {3, 4, 0, 0}, gate = {0, 1, 1, 1}, scale = {1, 2}, out(4);
  make_ref_ops()->gated_rms_norm({.x = view_of(x, {1, 2, 2}),
                                  .gate = view_of(gate, {1, 2, 2}),
                                  .scale = view_of(scale, {2}),
                                  .out = view_of(out, {1, 2, 2}),
                                  .eps = 1e-6f});
  const float silu1 = float(1 / (1 + std::exp(-1.0)));
  EXPECT_EQ(out[0], 0);
  EXPECT_NEAR(out[1], 4 / std::sqrt(12.5) * 2 * silu1, 1e-6);
  EXPECT_EQ(out[2], 0);
  EXPECT_EQ(out[3], 0);
}

TEST(RefSiluMul, MultipliesByTheSigmoid) {
  std::vector<float> gate = {0, 2, -1000, 1000}, up = {5, 3, 3, 3}, out(4);
  make_ref_ops()->gated_mul(
      {.gate = view_of(gate, {1, 4}), .up = view_of(up, {1, 4}), .out = view_of(out, {1, 4})});
  EXPECT_THAT(out,
              ElementsAre(0, FloatEq(float(6 / (1 + std::exp(-2.0)))), FloatEq(0), FloatEq(3000)));
}

TEST(RefGateHeads, TheGateIsTheSecondHalfOfEachHead) {
  std::vector<float> x = {10, 20, 30, 40};
  std::vector<float> q_and_gate = {7, 7, 0, 1000, 7, 7, -1000, 0};
  make_ref_ops()->gate_heads(
      {.x = view_of(x, {1, 2, 2}), .q_and_gate = view_of(q_and_gate, {1, 2, 4})});
  EXPECT_THAT(x, ElementsAre(5, 20, FloatEq(0), 20));
}

TEST(RefRoute, TakesTheLargestAndTheLowestIndexAmongEquals) {
  const float ln2 = float(std::log(2.0));
  std::vector<float> logits = {0, ln2, 0, ln2, -5, 1, 1, 1, 1, 1};
  std::vector<int32_t> ids(6);
  std::vector<float> weights(6);
  make_ref_ops()->route({.logits = view_of(logits, {2, 5}),
                         .ids = view_of(ids, {2, 3}),
                         .weights = view_of(weights, {2, 3})});
  EXPECT_THAT(ids, ElementsAre(1, 3, 0, 0, 1, 2));
  const float third = 1.0f / 3;
  EXPECT_THAT(weights, ElementsAre(FloatEq(0.4f), FloatEq(0.4f), FloatEq(0.2f), FloatEq(third),
                                   FloatEq(third), FloatEq(third)));
}

TEST(RefJoin, PutsRowsSideBySide) {
  std::vector<float> a = {1, 2, 3, 4}, b = {5, 6}, out(6);
  make_ref_ops()->join(
      {.a = view_of(a, {2, 2}), .b = view_of(b, {2, 1}), .out = view_of(out, {2, 3})});
  EXPECT_THAT(out, ElementsAre(1, 2, 5, 3, 4, 6));
}

TEST(RefPeaks, TheFirstOfEqualsAndTheLargestOfTheOthers) {
  std::vector<float> x = {1,         9,         4,         3,          //
                          5,         2,         5,         1,          // two are the largest
                          8,         7,         0,         0,          // it comes first
                          -INFINITY, -INFINITY, -INFINITY, -INFINITY,  //
                          -INFINITY, -3,        -INFINITY, -INFINITY};
  std::vector<int32_t> out(15);
  make_ref_ops()->peaks({.x = view_of(x, {5, 4}), .out = view_of(out, {5, 3})});
  const auto expect_peak = [&](size_t row, int32_t id, float value, float runner_up) {
    EXPECT_EQ(out[3 * row], id) << row;
    EXPECT_EQ(std::bit_cast<float>(out[3 * row + 1]), value) << row;
    EXPECT_EQ(std::bit_cast<float>(out[3 * row + 2]), runner_up) << row;
  };
  expect_peak(0, 1, 9, 4);
  expect_peak(1, 0, 5, 5);
  expect_peak(2, 0, 8, 7);
  expect_peak(3, 0, -INFINITY, -INFINITY);
  expect_peak(4, 1, -3, -INFINITY);
}

TEST(RefCandidates, FallAndAreFilledUp) {
  std::vector<float> x = {2, -0.0f, 5, NAN, 0, 5, -INFINITY, 3};
  std::vector<int32_t> out(size_t(2 * kCandidates));
  make_ref_ops()->candidates({.x = view_of(x, {1, 8}), .out = view_of(out, {1, kCandidates, 2})});
  const Candidate expected[] = {{2, 5}, {5, 5}, {7, 3},         {0, 2},
                                {1, 0}, {4, 0}, {3, -INFINITY}, {6, -INFINITY}};
  for (size_t i = 0; i < size_t(kCandidates); ++i) {
    const Candidate right = i < 8 ? expected[i] : Candidate{-1, -INFINITY};
    EXPECT_EQ(out[2 * i], right.id) << i;
    EXPECT_EQ(std::bit_cast<float>(out[2 * i + 1]), right.value) << i;
  }
}

// What they have to be: the beginning of a row that is sorted.
TEST(RefCandidates, AreTheBeginningOfASortedRow) {
  std::vector<float> x(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i * 7919 % 131);
  std::vector<int32_t> ids(x.size()), out(size_t(2 * kCandidates));
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, std::greater<>(), [&](int32_t id) { return x[size_t(id)]; });
  make_ref_ops()->candidates(
      {.x = view_of(x, {1, 1000}), .out = view_of(out, {1, kCandidates, 2})});
  for (size_t i = 0; i < size_t(kCandidates); ++i) {
    EXPECT_EQ(out[2 * i], ids[i]) << i;
    EXPECT_EQ(std::bit_cast<float>(out[2 * i + 1]), x[size_t(ids[i])]) << i;
  }
}

// One hidden value and experts that multiply: expert e gives silu(x) * x * (e + 1).
TEST(RefExperts, SumsChosenExpertsAndTheGatedSharedOne) {
  std::vector<float> one = {1}, factors = {1, 2, 3, 100};
  const auto scalar = [](float* value) {
    return Weight{.info = {WeightFormat::f32, 1, 1, 0},
                  .values = {reinterpret_cast<std::byte*>(value), DType::f32, {1, 1}},
                  .scales = {},
                  .packed = false};
  };
  const auto expert = [&](size_t e) {
    return GatedMlp{scalar(one.data()), scalar(one.data()), scalar(&factors[e])};
  };
  const std::vector<GatedMlp> experts = {expert(0), expert(1), expert(2)};
  const GatedMlp shared = expert(3);
  std::vector<float> x = {1, 2}, weights = {0.25f, 0.75f, 1, 0}, shared_gate = {0, -1000};
  std::vector<int32_t> ids = {2, 0, 1, 0};
  std::vector<float> scratch(size_t(experts_scratch_values(2, 2, 1, 1, 1))), out = {7, 7};
  make_ref_ops()->experts({.x = view_of(x, {2, 1}),
                           .ids = view_of(ids, {2, 2}),
                           .weights = view_of(weights, {2, 2}),
                           .experts = experts,
                           .shared = shared,
                           .shared_gate = view_of(shared_gate, {2, 1}),
                           .scratch = view_of(scratch, {int64_t(scratch.size())}),
                           .out = view_of(out, {2, 1}),
                           .add = true});
  const auto silu = [](double v) { return v / (1 + std::exp(-v)); };
  EXPECT_NEAR(out[0], 7 + silu(1) * (0.25 * 3 + 0.75 * 1 + 0.5 * 100), 1e-5);
  EXPECT_NEAR(out[1], 7 + silu(2) * 2 * (1 * 2), 1e-5);
}

}  // namespace
}  // namespace slip
