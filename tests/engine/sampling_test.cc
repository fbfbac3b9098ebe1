// From logits to tokens: which tokens can come, how often, and that the seed decides.
#include "engine/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace slip {
namespace {

const std::vector<float> kLogits = {1.0f, 3.0f, 2.0f, -1.0f, 2.5f, 0.0f};

int32_t choose(const SamplingOptions& options, std::vector<float> logits) {
  return Sampler(options, int64_t(logits.size()), int64_t(logits.size())).next(logits);
}

// How often each token came in `draws` independent requests' tokens of one sampler without
// penalties.
std::vector<int> frequencies(const SamplingOptions& options, const std::vector<float>& logits,
                             int draws) {
  Sampler sampler(options, int64_t(logits.size()), int64_t(logits.size()));
  std::vector<int> counts(logits.size());
  for (int i = 0; i < draws; ++i) {
    std::vector<float> copy = logits;
    ++counts[size_t(sampler.next(copy))];
  }
  return counts;
}

std::set<int> support(const SamplingOptions& options, const std::vector<float>& logits) {
  std::set<int> seen;
  const std::vector<int> counts = frequencies(options, logits, 5000);
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i]) seen.insert(int(i));
  return seen;
}

// Pearson's statistic against the given weights.
double chi_square(const std::vector<int>& counts, const std::vector<double>& weights) {
  double total = 0, draws = 0, statistic = 0;
  for (const double weight : weights) total += weight;
  for (const int count : counts) draws += count;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = draws * weights[i] / total;
    if (expected == 0) {
      EXPECT_EQ(counts[i], 0);
    } else {
      statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
  }
  return statistic;
}

// One in a million for five degrees of freedom; the seed is fixed, so a pass stays a pass.
constexpr double kChiSquareLimit = 35;

TEST(Sampler, GreedyTakesTheLargestAndTheFirstOfEquals) {
  EXPECT_EQ(choose({.temperature = 0}, kLogits), 1);
  EXPECT_EQ(choose({.temperature = 0}, {1, 5, 5, 2}), 1);
  EXPECT_EQ(choose({.temperature = 0, .top_k = 3, .top_p = 0.1f, .seed = 9}, kLogits), 1);
}

TEST(Sampler, FrequenciesMatchProbabilities) {
  for (const float temperature : {1.0f, 0.5f, 2.0f}) {
    std::vector<double> weights;
    for (const float logit : kLogits) weights.push_back(std::exp(double(logit) / temperature));
    EXPECT_LT(
        chi_square(frequencies({.temperature = temperature, .seed = 3}, kLogits, 40000), weights),
        kChiSquareLimit)
        << "temperature " << temperature;
  }
}

TEST(Sampler, CutsRenormaliseWhatTheyKeep) {
  std::vector<double> weights;
  for (const float logit : kLogits) weights.push_back(std::exp(double(logit)));
  weights[0] = weights[3] = weights[5] = 0;  // the three largest are left
  EXPECT_LT(chi_square(frequencies({.top_k = 3, .seed = 5}, kLogits, 40000), weights),
            kChiSquareLimit);
}

TEST(Sampler, DrawsOfDifferentSeedsAreIndependent) {
  std::vector<double> weights;
  for (const float logit : kLogits) weights.push_back(std::exp(double(logit)));
  std::vector<int> first(kLogits.size());
  for (uint64_t seed = 0; seed < 20000; ++seed) ++first[size_t(choose({.seed = seed}, kLogits))];
  EXPECT_LT(chi_square(first, weights), kChiSquareLimit);
}

TEST(Sampler, TopKKeepsTheKLargest) {
  EXPECT_EQ(support({.temperature = 3, .top_k = 1}, kLogits), (std::set{1}));
  EXPECT_EQ(support({.temperature = 3, .top_k = 3}, kLogits), (std::set{1, 2, 4}));
  EXPECT_EQ(support({.temperature = 3, .top_k = 0}, kLogits).size(), 6u);
  EXPECT_EQ(support({.temperature = 3, .top_k = 100}, kLogits).size(), 6u);
  EXPECT_EQ(support({.temperature = 3, .top_k = 2}, {1, 1, 1, 1}), (std::set{0, 1}))
      << "the lower ids of equals";
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesIt) {
  // Probabilities 0.5, 0.3, 0.15, 0.05
  const std::vector<float> logits = {std::log(0.3f), std::log(0.5f), std::log(0.05f),
                                     std::log(0.15f)};
  EXPECT_EQ(support({.top_p = 0.0f}, logits), (std::set{1}));
  EXPECT_EQ(support({.top_p = 0.49f}, logits), (std::set{1}));
  EXPECT_EQ(support({.top_p = 0.51f}, logits), (std::set{0, 1}));
  EXPECT_EQ(support({.top_p = 0.79f}, logits), (std::set{0, 1}));
  EXPECT_EQ(support({.top_p = 0.94f}, logits), (std::set{0, 1, 3}));
  EXPECT_EQ(support({.top_p = 1.0f}, logits).size(), 4u);
}

TEST(Sampler, MinPIsRelativeToTheMostLikely) {
  const std::vector<float> logits = {std::log(0.3f), std::log(0.5f), std::log(0.05f),
                                     std::log(0.15f)};
  EXPECT_EQ(support({.min_p = 0.61f}, logits), (std::set{1}));
  EXPECT_EQ(support({.min_p = 0.59f}, logits), (std::set{0, 1}));
  EXPECT_EQ(support({.min_p = 0.29f}, logits), (std::set{0, 1, 3}));
  EXPECT_EQ(support({.min_p = 0.05f}, logits).size(), 4u);
  EXPECT_EQ(support({.min_p = 2.0f}, logits), (std::set{1})) << "the most likely always stays";
}

TEST(Sampler, TheSeedAndTheHistoryDecide) {
  std::vector<float> logits(200);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = float(i % 7);
  const auto run = [&](uint64_t seed) {
    Sampler sampler({.temperature = 1.5f, .top_k = 50, .top_p = 0.9f, .seed = seed}, 200, 200);
    std::vector<int32_t> ids;
    for (int i = 0; i < 40; ++i) {
      std::vector<float> copy = logits;
      ids.push_back(sampler.next(copy));
    }
    return ids;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
  const std::vector<int32_t> ids = run(1);
  EXPECT_GT(std::set<int32_t>(ids.begin(), ids.end()).size(), 5u) << "every draw is another one";
}

// A drafter knows the probabilities only nearly, and draws with the same seed. Of two distributions
// that differ by d, no two draws can agree more often than 1 - d; these do in (1 - d) / (1 + d) of
// cases at least, wherever in the vocabulary the difference lies.
TEST(Sampler, NearDistributionsMostlyDrawTheSame) {
  std::vector<float> own(1000), near(1000);
  for (size_t i = 0; i < own.size(); ++i) {
    own[i] = std::sin(float(i) * 12.9898f) * 2;
    near[i] = own[i] + std::sin(float(i) * 78.233f) * 0.3f;
  }
  double own_total = 0, near_total = 0, difference = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    own_total += std::exp(double(own[i]));
    near_total += std::exp(double(near[i]));
  }
  for (size_t i = 0; i < own.size(); ++i)
    difference +=
        std::abs(std::exp(double(own[i])) / own_total - std::exp(double(near[i])) / near_total) / 2;
  constexpr int kDraws = 4000;
  int agreed = 0;
  for (uint64_t seed = 0; seed < kDraws; ++seed)
    agreed += choose({.seed = seed}, own) == choose({.seed = seed}, near);
  EXPECT_GT(difference, 0.05);
  EXPECT_GT(agreed, kDraws * ((1 - difference) / (1 + difference) - 0.02));
  EXPECT_LT(agreed, kDraws);
}

TEST(Sampler, RepetitionPenaltyCountsPromptAndAnswer) {
  Sampler sampler({.temperature = 0, .repetition_penalty = 2.0f}, 4, 4);
  sampler.see_prompt(std::vector<int32_t>{0, 0});
  std::vector<float> logits = {3.0f, 2.0f, -1.0f, 1.9f};
  EXPECT_EQ(sampler.next(logits), 1) << "0 was in the prompt: 3 / 2 < 2";
  EXPECT_EQ(logits[0], 1.5f) << "once, however often it was seen";
  logits = {3.0f, 2.0f, -1.0f, 1.9f};
  EXPECT_EQ(sampler.next(logits), 3) << "1 was chosen: 2 / 2 < 1.9";
  logits = {-1.0f, -1.0f, -1.5f, -1.0f};
  EXPECT_EQ(sampler.next(logits), 2) << "negative logits are multiplied";
}

TEST(Sampler, PresenceAndFrequencyCountTheAnswerOnly) {
  Sampler sampler({.temperature = 0, .presence_penalty = 0.5f, .frequency_penalty = 0.25f}, 3, 3);
  sampler.see_prompt(std::vector<int32_t>{0, 1, 2});
  std::vector<float> logits = {2.0f, 1.0f, 0.0f};
  EXPECT_EQ(sampler.next(logits), 0);
  EXPECT_EQ(logits, (std::vector<float>{2.0f, 1.0f, 0.0f})) << "the prompt costs nothing";
  logits = {2.0f, 1.0f, 0.0f};
  EXPECT_EQ(sampler.next(logits), 0);
  EXPECT_EQ(logits[0], 2.0f - 0.5f - 0.25f);
  logits = {2.0f, 1.0f, 0.0f};
  sampler.next(logits);
  EXPECT_EQ(logits[0], 2.0f - 0.5f - 2 * 0.25f);
}

TEST(Sampler, BiasIsAddedAndUnknownIdsAreIgnored) {
  EXPECT_EQ(choose({.temperature = 0, .logit_bias = {{3, 10.0f}}}, kLogits), 3);
  EXPECT_EQ(choose({.temperature = 0, .logit_bias = {{1, -100.0f}}}, kLogits), 4);
  EXPECT_EQ(choose({.temperature = 0, .logit_bias = {{-1, 50.0f}, {99, 50.0f}}}, kLogits), 1);
  SamplingOptions banned{.seed = 4};
  banned.logit_bias = {{1, -std::numeric_limits<float>::infinity()}};
  EXPECT_FALSE(support(banned, kLogits).contains(1));
}

TEST(Sampler, PaddingOfTheVocabularyIsNeverChosen) {
  std::vector<float> logits = {0, 1, 2, 50, 60};
  const std::vector<float> original = logits;
  Sampler greedy({.temperature = 0}, 5, 3);
  EXPECT_EQ(greedy.next(logits), 2);
  Sampler random({.temperature = 100, .logit_bias = {{4, 100.0f}}}, 5, 3);
  for (int i = 0; i < 2000; ++i) {
    logits = original;
    EXPECT_LT(random.next(logits), 3);
  }
}

TEST(Sampler, ExtremeLogitsDoNotBreakIt) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(choose({.temperature = 0.01f, .seed = 1}, {1e30f, -1e30f, 0}), 0);
  EXPECT_EQ(choose({.temperature = 1e-30f, .seed = 1}, {1, 2, 1.5f}), 1);
  EXPECT_EQ(choose({.seed = 1}, {-inf, 0.5f, -inf}), 1);
}

TEST(Sampler, LogitsThatAreNoNumbersAreNeverChosenBesideOthers) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> logits(1000, nan);
  for (const int top_k : {0, 5}) {
    const int32_t any = choose({.top_k = top_k, .seed = 1}, logits);
    EXPECT_GE(any, 0);
    EXPECT_LT(any, 1000);
    logits[617] = -3;
    EXPECT_EQ(choose({.top_k = top_k, .seed = 1}, logits), 617);
    logits[617] = nan;
  }
}

}  // namespace
}  // namespace slip
