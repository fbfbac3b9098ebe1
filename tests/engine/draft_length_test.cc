// The chosen number of drafts follows what drafts are worth and what they cost.
#include "engine/draft_length.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace slip {
namespace {

// A world in which every draft is right with a given chance and times are known.
struct World {
  double chance;
  double row_seconds, first_row_seconds, draft_seconds;
  // The first two steps of each length take so many times longer, as where they are recorded.
  double slow_beginnings = 1;
  // From this step on all times are twice as long.
  int slower_from = 1'000'000;
};

// Tokens per second and mean number of verified drafts, after some learning.
struct Course {
  double rate = 0;
  double drafts = 0;
};

Course live(DraftLength length, const World& world, int steps = 3000, uint32_t seed = 5) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  double tokens = 0, seconds = 0, drafts = 0;
  std::map<int64_t, int> seen;
  DraftChances chances;
  for (int step = 0; step < steps; ++step) {
    DraftOutcome outcome;
    length.begin_step(1);
    chances.begin_step();
    while (length.wants_another(chances, length.most())) {
      ++outcome.made;
      chances.drafted(3.0f);
      if (!length.worth_verifying(chances)) break;
      ++outcome.verified;
    }
    while (outcome.right < outcome.verified && uniform(random) < world.chance) ++outcome.right;
    double noise = 0.9 + 0.2 * uniform(random);
    if (seen[outcome.verified]++ < 2) noise *= world.slow_beginnings;
    if (step >= world.slower_from) noise *= 2;
    outcome.draft_seconds = double(outcome.made) * world.draft_seconds * noise;
    outcome.verify_seconds =
        (world.first_row_seconds + double(outcome.verified) * world.row_seconds) * noise;
    chances.end_step(std::min(outcome.verified, outcome.right + 1), outcome.right);
    length.end_step(outcome);
    if (step < steps / 3) continue;
    tokens += double(outcome.right + 1);
    seconds += outcome.draft_seconds + outcome.verify_seconds;
    drafts += double(outcome.verified);
  }
  return {tokens / seconds, drafts / (steps - steps / 3)};
}

TEST(DraftLength, FixedIsFixed) {
  const World world{.chance = 0.1, .row_seconds = 1, .first_row_seconds = 1, .draft_seconds = 1};
  for (const int64_t drafts : {1, 2, 5})
    EXPECT_DOUBLE_EQ(live(DraftLength::fixed(drafts), world).drafts, double(drafts));
}

TEST(DraftLength, AutomaticComesCloseToTheBestFixedLength) {
  const World worlds[] = {
      {.chance = 0.9, .row_seconds = 0.1, .first_row_seconds = 1, .draft_seconds = 0.1},
      {.chance = 0.7, .row_seconds = 0.3, .first_row_seconds = 1, .draft_seconds = 0.1},
      {.chance = 0.5, .row_seconds = 0.2, .first_row_seconds = 1, .draft_seconds = 0.05},
      {.chance = 0.3, .row_seconds = 0.8, .first_row_seconds = 1, .draft_seconds = 0.3},
      {.chance = 0.0, .row_seconds = 0.2, .first_row_seconds = 1, .draft_seconds = 0.2},
  };
  for (const World& world : worlds) {
    double best = 0;
    for (int64_t drafts = 0; drafts <= 8; ++drafts)
      best = std::max(best, live(DraftLength::fixed(drafts), world).rate);
    EXPECT_GT(live(DraftLength::automatic(8), world).rate, 0.95 * best)
        << "chance " << world.chance;
  }
}

TEST(DraftLength, SlowBeginningsAreNotBelieved) {
  const World world{.chance = 0.8,
                    .row_seconds = 0.25,
                    .first_row_seconds = 1,
                    .draft_seconds = 0.1,
                    .slow_beginnings = 15};
  double best = 0;
  for (int64_t drafts = 0; drafts <= 8; ++drafts)
    best = std::max(best, live(DraftLength::fixed(drafts), world).rate);
  EXPECT_GT(live(DraftLength::automatic(8), world, 600).rate, 0.9 * best);
}

TEST(DraftLength, AShortAnswerIsEnoughToLearnFrom) {
  // Sixty steps, of which the last forty count; the mean of some lives, as single ones are noisy.
  const World cheap{
      .chance = 0.95, .row_seconds = 0.1, .first_row_seconds = 1, .draft_seconds = 0.1};
  const World dear{.chance = 0.6, .row_seconds = 0.5, .first_row_seconds = 1, .draft_seconds = 0.2};
  for (const World& world : {cheap, dear}) {
    double best = 0, reached = 0;
    for (int64_t drafts = 0; drafts <= 8; ++drafts)
      best = std::max(best, live(DraftLength::fixed(drafts), world).rate);
    constexpr int kLives = 20;
    for (uint32_t seed = 0; seed < kLives; ++seed)
      reached += live(DraftLength::automatic(8), world, 60, seed).rate / kLives;
    EXPECT_GT(reached, 0.88 * best) << "chance " << world.chance;
  }
}

TEST(DraftLength, AMachineThatBecomesSlowerChangesNothing) {
  // All times double in the middle: what pays is the same.
  World world{.chance = 0.9, .row_seconds = 0.15, .first_row_seconds = 1, .draft_seconds = 0.1};
  const double before = live(DraftLength::automatic(8), world).drafts;
  world.slower_from = 1500;
  EXPECT_NEAR(live(DraftLength::automatic(8), world).drafts, before, 0.1 * before);
}

TEST(DraftLength, GivesUpWhereNothingIsRightAndTriesAgain) {
  const World world{.chance = 0, .row_seconds = 0.2, .first_row_seconds = 1, .draft_seconds = 0.2};
  const Course course = live(DraftLength::automatic(8), world);
  EXPECT_LT(course.drafts, 0.1);
  EXPECT_GT(course.drafts, 0.0) << "it must notice when the text becomes easy";
}

TEST(DraftCosts, DraftsMadeOutOfCuriosityDoNotEndIdleness) {
  DraftCosts costs;
  const auto step = [&](int64_t drafts) {
    costs.end_step({.made = drafts,
                    .verified = drafts,
                    .draft_seconds = 1e-4 * double(drafts),
                    .verify_seconds = 1e-3 * double(1 + drafts)});
  };
  while (costs.exploring()) step(costs.drafts_to_explore());
  for (int i = 0; i < 200; ++i) {
    step(costs.curious() ? 1 : 0);
    EXPECT_TRUE(costs.idle()) << i;
  }
  while (costs.curious()) step(0);
  step(1);  // because it pays
  EXPECT_FALSE(costs.idle());
}

TEST(DraftCosts, AJumpInWhatRowsCostDoesNotMakeThemFree) {
  // A fifth row costs as much as four, so that a line through both is negative at one row.
  DraftCosts costs;
  const auto step = [&](int64_t drafts, double seconds) {
    costs.end_step({.made = drafts,
                    .verified = drafts,
                    .draft_seconds = 1e-4 * double(drafts),
                    .verify_seconds = seconds});
  };
  for (int i = 0; i < 300; ++i) {
    step(3, 2e-3);
    step(4, 4e-3);
  }
  for (int i = 0; i < 1000; ++i) step(0, 1e-3);
  EXPECT_GT(costs.of_verifying(), 0.2);
}

TEST(DraftLength, UnsureDraftsAreNotVerified) {
  // Sure drafts (margin 8) are always right, unsure ones (margin 0) never.
  DraftLength length = DraftLength::automatic(4);
  DraftChances chances;
  std::mt19937 random(7);
  int unsure_verified = 0, sure_verified = 0;
  for (int step = 0; step < 2000; ++step) {
    DraftOutcome outcome;
    length.begin_step(1);
    chances.begin_step();
    bool right = true;
    while (length.wants_another(chances, length.most())) {
      const bool sure = random() % 2 == 0;
      ++outcome.made;
      chances.drafted(sure ? 8.0f : 0.0f);
      const bool worth = length.worth_verifying(chances);
      if (worth && step > 1000) ++(sure ? sure_verified : unsure_verified);
      if (!worth) break;
      ++outcome.verified;
      right = right && sure;
      if (right) ++outcome.right;
    }
    outcome.draft_seconds = 0.05 * double(outcome.made);
    outcome.verify_seconds = 1 + 0.2 * double(outcome.verified);
    chances.end_step(std::min(outcome.verified, outcome.right + 1), outcome.right);
    length.end_step(outcome);
  }
  EXPECT_GT(sure_verified, 500);
  EXPECT_LT(unsure_verified, sure_verified / 10);
}

}  // namespace
}  // namespace slip
