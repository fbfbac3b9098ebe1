#include "engine/draft_length.h"

#include <algorithm>

namespace slip {
namespace {

// Acceptance is remembered over some hundred drafts, times over some dozen steps.
constexpr double kKeepChance = 0.995;
constexpr double kKeepTime = 0.97;

// Steps of every length at the beginning, to learn what rows cost.
constexpr int64_t kFirstSteps = 8;
// When drafting does not pay, it is tried again now and then, in case the text has changed.
constexpr int64_t kRetryAfter = 48;

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
}

double DraftLength::Line::slope() const {
  const double spread = n_ * xx_ - x_ * x_;
  // Steps of one length only say what a row costs with everything else included.
  if (spread < 1e-3 * n_ * n_) return x_ > 0 ? y_ / x_ : 0;
  return std::max(0.0, (n_ * xy_ - x_ * y_) / spread);
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

bool DraftLength::exploring() const { return steps_ < kFirstSteps; }

void DraftLength::begin_step() {
  made_ = 0;
  chance_ = 1;
}

bool DraftLength::wants_another() const {
  if (made_ >= most_) return false;
  if (!automatic_) return true;
  if (exploring()) return made_ < steps_ % (most_ + 1);
  if (made_ == 0 && idle_steps_ >= kRetryAfter) return true;
  const double rate = tokens_.mean() / std::max(seconds_.mean(), 1e-12);
  const double chance = chance_ * right_by_place_[size_t(made_)].mean();
  return chance > rate * (draft_time_.slope() + verify_time_.slope());
}

bool DraftLength::drafted(float margin) {
  buckets_[size_t(made_)] = bucket(margin);
  chance_ *= right_by_margin_[size_t(buckets_[size_t(made_)])].mean();
  ++made_;
  if (!automatic_ || exploring() || idle_steps_ >= kRetryAfter) return true;
  const double rate = tokens_.mean() / std::max(seconds_.mean(), 1e-12);
  return chance_ > rate * verify_time_.slope();
}

void DraftLength::end_step(const Outcome& outcome) {
  ++steps_;
  idle_steps_ = outcome.made > 0 ? 0 : idle_steps_ + 1;
  for (int64_t i = 0; i < std::min(outcome.verified, outcome.right + 1); ++i) {
    const double right = i < outcome.right ? 1 : 0;
    right_by_margin_[size_t(buckets_[size_t(i)])].add(right, kKeepChance);
    right_by_place_[size_t(i)].add(right, kKeepChance);
  }
  if (outcome.made > 0) draft_time_.add(double(outcome.made), outcome.draft_seconds);
  verify_time_.add(double(outcome.verified + 1), outcome.verify_seconds);
  tokens_.add(double(outcome.right + 1), kKeepTime);
  seconds_.add(outcome.draft_seconds + outcome.verify_seconds, kKeepTime);
}

}  // namespace slip
