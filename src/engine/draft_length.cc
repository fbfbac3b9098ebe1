#include "engine/draft_length.h"

#include <algorithm>

namespace slip {
namespace {

// Chances are remembered over some hundred drafts, times over as many steps.
constexpr double kKeepChance = 0.995;
constexpr double kKeepTime = 0.99;
// What takes so many times longer than usual was interrupted by something else, unless it stays so.
constexpr double kOutlier = 2.5;
constexpr int kMostDoubted = 8;

// Steps of different lengths at the beginning, to learn what rows cost; each several times, for the
// first of a length may be slow. When drafting does not pay, the last two are tried again now and
// then, in case the text or the machine has changed.
constexpr std::array<int64_t, 10> kExploredDrafts = {4, 4, 0, 0, 2, 2, 1, 1, 2, 1};
constexpr int64_t kExploreAgainFrom = 8, kExploreAfter = 64;

// What costs count for in a step that is to learn.
constexpr double kCuriosity = 0.5;

constexpr std::array<float, 7> kMargins = {0.25f, 0.5f, 1.0f, 1.75f, 2.75f, 4.0f, 6.0f};
// What to expect before anything was seen.
constexpr std::array<double, 8> kExpected = {0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98};
constexpr double kPriorWeight = 4;

}  // namespace

void FadingMean::add(double value, double keep) {
  sum_ = sum_ * keep + value;
  weight_ = weight_ * keep + 1;
}

bool UsualTime::add(double seconds, bool& restarted) {
  restarted = !mean_.empty() && (seconds * kOutlier < mean_.mean() ||
                                 (seconds > kOutlier * mean_.mean() && doubted_ >= kMostDoubted));
  if (restarted) mean_ = FadingMean();
  if (!mean_.empty() && seconds > kOutlier * mean_.mean()) {
    ++doubted_;
    return false;
  }
  doubted_ = 0;
  mean_.add(seconds, kKeepTime);
  return true;
}

DraftChances::DraftChances() {
  for (size_t i = 0; i < right_by_margin_.size(); ++i)
    right_by_margin_[i] = FadingMean(kExpected[i], kPriorWeight);
  for (FadingMean& place : right_by_place_) place = FadingMean(0.7, kPriorWeight);
}

int DraftChances::bucket(float margin) {
  int index = 0;
  while (index < int(kMargins.size()) && margin >= kMargins[size_t(index)]) ++index;
  return index;
}

void DraftChances::begin_step() {
  made_ = 0;
  chance_ = 1;
}

void DraftChances::drafted(float margin) {
  buckets_[size_t(made_)] = bucket(margin);
  chance_ *= right_by_margin_[size_t(buckets_[size_t(made_)])].mean();
  ++made_;
}

void DraftChances::end_step(int64_t verified, int64_t right) {
  for (int64_t i = 0; i < std::min(verified, right + 1); ++i) {
    const double was_right = i < right ? 1 : 0;
    right_by_margin_[size_t(buckets_[size_t(i)])].add(was_right, kKeepChance);
    right_by_place_[size_t(i)].add(was_right, kKeepChance);
  }
}

void DraftCosts::Line::add(double rows, double seconds) {
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

double DraftCosts::Line::slope() const {
  if (slope_ >= 0) return slope_;
  return x_ > 0 ? y_ / x_ : 0;
}

bool DraftCosts::exploring() const { return explored_ < int64_t(kExploredDrafts.size()); }

int64_t DraftCosts::drafts_to_explore() const { return kExploredDrafts[size_t(explored_)]; }

bool DraftCosts::idle() const {
  constexpr int64_t kSomeTime = 8;
  return explored_ >= kExploreAgainFrom && unpaid_steps_ >= kSomeTime;
}

double DraftCosts::tokens_per_second() const {
  return tokens_.mean() / std::max(seconds_.mean(), 1e-12);
}

double DraftCosts::of_drafting() const {
  return (curious() ? kCuriosity : 1) * tokens_per_second() *
         (usual_draft_.mean() + verify_time_.slope());
}

double DraftCosts::of_verifying() const {
  return (curious() ? kCuriosity : 1) * tokens_per_second() * verify_time_.slope();
}

// Steps of always the same length would never learn what others take.
bool DraftCosts::curious() const { return exploring() || steps_ % 24 == 23; }

void DraftCosts::end_step(const DraftOutcome& outcome) {
  unpaid_steps_ = outcome.made > 0 && !curious() ? 0 : unpaid_steps_ + 1;
  ++steps_;
  if (exploring()) ++explored_;
  idle_steps_ = outcome.made > 0 ? 0 : idle_steps_ + 1;
  if (idle_steps_ >= kExploreAfter) {
    idle_steps_ = 0;
    explored_ = kExploreAgainFrom;
  }
  const int64_t rows = outcome.verified + outcome.sequences;
  if (!believes(outcome, size_t(rows))) return;
  verify_time_.add(double(rows), outcome.verify_seconds);
  tokens_.add(double(outcome.right + outcome.sequences), kKeepTime);
  seconds_.add(outcome.draft_seconds + outcome.verify_seconds, kKeepTime);
}

bool DraftCosts::believes(const DraftOutcome& outcome, size_t rows) {
  bool draft_again = false, verify_again = false;
  const bool draft = outcome.made == 0 ||
                     usual_draft_.add(outcome.draft_seconds / double(outcome.made), draft_again);
  const bool verify = usual_verify_[std::min(rows, usual_verify_.size() - 1)].add(
      outcome.verify_seconds, verify_again);
  if (draft_again || verify_again) {
    verify_time_ = Line();
    tokens_ = seconds_ = FadingMean();
  }
  return draft && verify;
}

bool wants_another(const DraftChances& chances, const DraftCosts& costs) {
  if (costs.exploring()) return chances.made() < costs.drafts_to_explore();
  return chances.another_right() > costs.of_drafting();
}

bool worth_verifying(const DraftChances& chances, const DraftCosts& costs) {
  return costs.exploring() || chances.all_right() > costs.of_verifying();
}

DraftLength::DraftLength(int64_t most, bool automatic)
    : most_(std::min(most, DraftChances::kMostDrafts)), automatic_(automatic) {}

bool DraftLength::wants_another() const {
  if (chances_.made() >= most_) return false;
  return !automatic_ || slip::wants_another(chances_, costs_);
}

bool DraftLength::drafted(float margin) {
  chances_.drafted(margin);
  return !automatic_ || worth_verifying(chances_, costs_);
}

void DraftLength::end_step(const Outcome& outcome) {
  chances_.end_step(outcome.verified, outcome.right);
  costs_.end_step(outcome);
}

}  // namespace slip
