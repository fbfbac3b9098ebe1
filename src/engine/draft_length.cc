#include "engine/draft_length.h"

#include <algorithm>

namespace slip {
namespace {

// Chances are remembered over some hundred drafts, times over as many steps.
constexpr double kKeepChance = 0.995;
constexpr double kKeepTime = 0.99;
// A step that takes so many times longer than usual was interrupted by something else.
constexpr double kOutlier = 3;

// Steps of different lengths at the beginning, to learn what rows cost, after some that are not
// timed. When drafting does not pay, the last two are tried again now and then, in case the text or
// the machine has changed.
constexpr std::array<int64_t, 8> kExploredDrafts = {4, 4, 2, 0, 4, 3, 2, 1};
constexpr int64_t kWarmSteps = 2, kExploreAgainFrom = 6, kExploreAfter = 64;

constexpr std::array<float, 7> kMargins = {0.25f, 0.5f, 1.0f, 1.75f, 2.75f, 4.0f, 6.0f};
// What to expect before anything was seen.
constexpr std::array<double, 8> kExpected = {0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98};
constexpr double kPriorWeight = 4;

}  // namespace

void DraftLength::Fading::add(double value, double keep) {
  sum_ = sum_ * keep + value;
  weight_ = weight_ * keep + 1;
}

void DraftLength::Line::add(double rows, double seconds) {
  for (double* sum : {&n_, &x_, &y_, &xx_, &xy_}) *sum *= kKeepTime;
  n_ += 1;
  x_ += rows;
  y_ += seconds;
  xx_ += rows * rows;
  xy_ += rows * seconds;
  // Steps of one length say nothing about what one more row costs.
  const double spread = n_ * xx_ - x_ * x_;
  if (spread > 0.02 * n_ * n_) slope_ = std::max(0.0, (n_ * xy_ - x_ * y_) / spread);
}

double DraftLength::Line::slope() const {
  if (slope_ >= 0) return slope_;
  return x_ > 0 ? y_ / x_ : 0;
}

DraftLength::DraftLength(int64_t most, bool automatic)
    : most_(std::min<int64_t>(most, kMaxDrafts)), automatic_(automatic) {
  for (int i = 0; i < kBuckets; ++i)
    right_by_margin_[size_t(i)] = Fading(kExpected[size_t(i)], kPriorWeight);
  for (Fading& place : right_by_place_) place = Fading(0.7, kPriorWeight);
}

int DraftLength::bucket(float margin) {
  int index = 0;
  while (index < int(kMargins.size()) && margin >= kMargins[size_t(index)]) ++index;
  return index;
}

bool DraftLength::exploring() const { return explored_ < int64_t(kExploredDrafts.size()); }

double DraftLength::tokens_per_second() const {
  return tokens_.mean() / std::max(seconds_.mean(), 1e-12);
}

void DraftLength::begin_step() {
  made_ = 0;
  chance_ = 1;
}

bool DraftLength::wants_another() const {
  if (made_ >= most_) return false;
  if (!automatic_) return true;
  if (exploring()) return made_ < kExploredDrafts[size_t(explored_)];
  const double chance = chance_ * right_by_place_[size_t(made_)].mean();
  return chance > tokens_per_second() * (draft_seconds_.mean() + verify_time_.slope());
}

bool DraftLength::drafted(float margin) {
  buckets_[size_t(made_)] = bucket(margin);
  chance_ *= right_by_margin_[size_t(buckets_[size_t(made_)])].mean();
  ++made_;
  if (!automatic_ || exploring()) return true;
  return chance_ > tokens_per_second() * verify_time_.slope();
}

void DraftLength::end_step(const Outcome& outcome) {
  const bool explored = exploring();
  if (explored) ++explored_;
  idle_steps_ = outcome.made > 0 ? 0 : idle_steps_ + 1;
  if (idle_steps_ >= kExploreAfter) {
    idle_steps_ = 0;
    explored_ = kExploreAgainFrom;
  }
  for (int64_t i = 0; i < std::min(outcome.verified, outcome.right + 1); ++i) {
    const double right = i < outcome.right ? 1 : 0;
    right_by_margin_[size_t(buckets_[size_t(i)])].add(right, kKeepChance);
    right_by_place_[size_t(i)].add(right, kKeepChance);
  }
  const double seconds = outcome.draft_seconds + outcome.verify_seconds;
  if (warm_steps_ < kWarmSteps) {
    ++warm_steps_;
    return;
  }
  if (!explored && seconds > kOutlier * seconds_.mean()) return;
  if (outcome.made > 0) draft_seconds_.add(outcome.draft_seconds / double(outcome.made), kKeepTime);
  verify_time_.add(double(outcome.verified + 1), outcome.verify_seconds);
  tokens_.add(double(outcome.right + 1), kKeepTime);
  seconds_.add(seconds, kKeepTime);
}

}  // namespace slip
