#include "engine/draft_length.h"

#include <algorithm>
#include <bit>

namespace slip {
namespace {

// Chances are remembered over some hundred drafts, times over as many steps.
constexpr double kKeepChance = 0.995;
constexpr double kKeepTime = 0.99;
// The first steps of a length may be slow, as on a GPU, where they are recorded.
constexpr int64_t kSlowBeginnings = 2;
// A single time is believed to be so many times longer than expected, and no more: it may have been
// interrupted. Nothing makes a step shorter than it is, so shorter ones are believed.
constexpr double kMostSurprise = 1.5;
constexpr double kDraftTrust = 0.1;  // how far a single draft's time moves what is expected

// Steps at the beginning, to learn what rows cost: two lengths, each until it is believed. When
// drafting does not pay, the last two are tried again now and then, in case the text or the machine
// has changed.
constexpr std::array<int64_t, 8> kExploredDrafts = {2, 2, 2, 0, 0, 0, 2, 2};
constexpr int64_t kExploreAgainFrom = 6;
// The first times soon: what was seen at the beginning may have been bad luck.
constexpr int64_t kFirstPatience = 12, kMostPatience = 96;

// What costs count for in a step that is to learn.
constexpr double kCuriosity = 0.7;

constexpr std::array<float, 7> kMargins = {0.25f, 0.5f, 1.0f, 1.75f, 2.75f, 4.0f, 6.0f};
// What to expect before anything was seen.
constexpr std::array<double, 8> kExpected = {0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98};
constexpr double kPriorWeight = 4;

}  // namespace

void FadingMean::add(double value, double keep) {
  sum_ = sum_ * keep + value;
  weight_ = weight_ * keep + 1;
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

double DraftChances::right_in_a_row(int64_t drafts) const {
  double chance = 1;
  for (int64_t i = 0; i < drafts; ++i) chance *= right_by_place_[size_t(i)].mean();
  return chance;
}

void DraftChances::end_step(int64_t judged, int64_t right) {
  for (int64_t i = 0; i < judged; ++i) {
    const double was_right = i < right ? 1 : 0;
    right_by_margin_[size_t(buckets_[size_t(i)])].add(was_right, kKeepChance);
    right_by_place_[size_t(i)].add(was_right, kKeepChance);
  }
}

void DraftCosts::Line::add(double rows, double seconds) {
  constexpr double kEnough = 1.5;  // steps, to expect anything
  // Costs that jump at some length may have a line that is negative at others: no time to go by.
  if (const double expected = fixed_ + rows * each_; n_ > kEnough && expected > 0)
    seconds = std::min(seconds, expected * kMostSurprise);
  for (double* sum : {&n_, &x_, &y_, &xx_, &xy_}) *sum *= kKeepTime;
  n_ += 1;
  x_ += rows;
  y_ += seconds;
  xx_ += rows * rows;
  xy_ += rows * seconds;
  // Steps of one length say nothing about what one more row costs.
  const double spread = n_ * xx_ - x_ * x_;
  if (spread > 0.02 * n_ * n_) each_ = std::max(0.0, (n_ * xy_ - x_ * y_) / spread);
  fixed_ = (y_ - each_ * x_) / n_;
}

bool DraftCosts::exploring() const { return explored_ < int64_t(kExploredDrafts.size()); }

int64_t DraftCosts::patience() const {
  return std::min(kFirstPatience << std::min<int64_t>(fruitless_tries_, 8), kMostPatience);
}

int64_t DraftCosts::drafts_to_explore() const { return kExploredDrafts[size_t(explored_)]; }

bool DraftCosts::idle() const {
  constexpr int64_t kSomeTime = 8;
  return explored_ >= kExploreAgainFrom && unpaid_steps_ >= kSomeTime;
}

double DraftCosts::tokens_per_second() const {
  const double seconds = recent_.steps * verify_time_.fixed() + recent_.rows * verify_time_.each() +
                         recent_.drafts * draft_time_;
  return seconds > 0 ? recent_.tokens / seconds : 0;
}

double DraftCosts::of_drafting() const {
  return (curious() ? kCuriosity : 1) * tokens_per_second() * (draft_time_ + verify_time_.each());
}

double DraftCosts::of_verifying() const {
  return (curious() ? kCuriosity : 1) * tokens_per_second() * verify_time_.each();
}

// Steps of always the same length would never learn what others take.
bool DraftCosts::curious() const { return exploring() || steps_ % 24 == 23; }

void DraftCosts::end_step(const DraftOutcome& outcome) {
  unpaid_steps_ = outcome.made > 0 && !curious() ? 0 : unpaid_steps_ + 1;
  ++steps_;
  if (exploring()) ++explored_;
  if (outcome.made > 0) {
    idle_steps_ = 0;
  } else {
    rest();
  }
  if (unpaid_steps_ == 0) fruitless_tries_ = 0;
  const int64_t rows = outcome.verified + outcome.sequences;
  learn_times(outcome, rows);
  const auto add = [](double& sum, int64_t amount) { sum = sum * kKeepTime + double(amount); };
  add(recent_.steps, 1);
  add(recent_.rows, rows);
  add(recent_.drafts, outcome.made);
  add(recent_.tokens, outcome.right + outcome.sequences);
}

void DraftCosts::rest() {
  if (exploring() || ++idle_steps_ < patience()) return;
  idle_steps_ = 0;
  explored_ = kExploreAgainFrom;
  ++fruitless_tries_;
}

void DraftCosts::learn_times(const DraftOutcome& outcome, int64_t rows) {
  int64_t& seen = seen_[std::min(size_t(rows), seen_.size() - 1)];
  if (++seen > kSlowBeginnings) verify_time_.add(double(rows), outcome.verify_seconds);
  if (outcome.made == 0 || ++seen_drafting_ <= kSlowBeginnings) return;
  const double seconds = outcome.draft_seconds / double(outcome.made);
  if (draft_time_ == 0) draft_time_ = seconds;
  draft_time_ += kDraftTrust * (std::min(seconds, draft_time_ * kMostSurprise) - draft_time_);
}

DraftLength::DraftLength(int64_t most, bool automatic)
    : most_(std::min(most, kMaxDrafts)), automatic_(automatic) {}

void DraftLength::begin_step(int64_t sequences) {
  size_ = std::min(size_t(std::bit_width(uint64_t(sequences))), costs_.size() - 1);
}

int64_t DraftLength::drafts_that_pay(const DraftChances& chances, int64_t limit) const {
  limit = std::min(limit, most_);
  if (!automatic_) return limit;
  if (costs().exploring()) return std::min(limit, costs().drafts_to_explore());
  int64_t count = 0;
  while (count < limit && chances.right_in_a_row(count + 1) > costs().of_drafting()) ++count;
  return count;
}

bool DraftLength::wants_another(const DraftChances& chances, int64_t limit) const {
  if (chances.made() >= std::min(limit, most_)) return false;
  if (!automatic_) return true;
  if (costs().exploring()) return chances.made() < costs().drafts_to_explore();
  return chances.another_right() > costs().of_drafting();
}

bool DraftLength::worth_verifying(const DraftChances& chances) const {
  return !automatic_ || costs().exploring() || chances.all_right() > costs().of_verifying();
}

}  // namespace slip
