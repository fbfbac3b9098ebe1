// How many tokens to draft: a fixed number, or as many as pay.
//
// A step takes time for every row it verifies and for every draft it makes, and yields one token
// more than the drafts that turn out right. Drafting one more token pays while
//
//   chance that it and all before it are right  >  rate * (time to draft it + time to verify it)
//
// where rate is the tokens per second of recent steps, if they took what such steps take now: the
// tokens that the same time would yield otherwise. Chances come from what happened to earlier
// drafts of the same certainty, times from a line fitted to earlier steps. The text is the same
// whatever is chosen here.
#pragma once

#include <array>
#include <cstdint>

#include "engine/draft_counts.h"

namespace slip {

// A mean in which old samples fade.
class FadingMean {
 public:
  explicit FadingMean(double prior = 0, double weight = 0)
      : sum_(prior * weight), weight_(weight) {}
  void add(double value, double keep);
  double mean() const { return weight_ > 0 ? sum_ / weight_ : 0; }
  bool empty() const { return weight_ == 0; }

 private:
  double sum_, weight_;
};

// How often the drafts of one text are right.
class DraftChances {
 public:
  DraftChances();

  void begin_step();
  // A draft was made, its logit so far above the next best.
  void drafted(float margin);

  int64_t made() const { return made_; }
  // Chance that all drafts so far are right, and that another one will be as well.
  double all_right() const { return chance_; }
  double another_right() const { return chance_ * right_by_place_[size_t(made_)].mean(); }
  // Chance that so many are right, before the first was made.
  double right_in_a_row(int64_t drafts) const;

  // Of so many drafts of this step it is known whether they were right; so many of them were.
  void end_step(int64_t judged, int64_t right);

 private:
  static constexpr int kBuckets = 8;
  static int bucket(float margin);

  // Of the step being built.
  int64_t made_ = 0;
  double chance_ = 1;
  std::array<int, kMaxDrafts> buckets_{};

  std::array<FadingMean, kBuckets> right_by_margin_;
  std::array<FadingMean, kMaxDrafts> right_by_place_;  // given that those before were right
};

// What came of a step: how many of the verified drafts were right, and what it took.
struct DraftOutcome {
  int64_t made = 0;      // drafts made
  int64_t verified = 0;  // of which verified
  int64_t right = 0;     // of which right
  double draft_seconds = 0;
  double verify_seconds = 0;
  int64_t sequences = 1;  // that took part in the step
};

// What steps take, with drafts and without.
class DraftCosts {
 public:
  // Times must be learnt first: so many drafts are to be made, if any number is.
  bool exploring() const;
  int64_t drafts_to_explore() const;
  // For some time no drafts have been made but out of curiosity: they did not pay.
  bool idle() const;
  // Drafts of this step would be made to learn what they cost, not because they pay.
  bool curious() const;

  // The price of one more draft, in tokens: those that would be generated in the time it takes to
  // make and verify it, or only to verify it.
  double of_drafting() const;
  double of_verifying() const;

  void end_step(const DraftOutcome& outcome);
  // A step without drafts, whatever it took: they are tried again after so many of them.
  void rest();

 private:
  // seconds = fixed + rows * each, fitted to recent steps.
  class Line {
   public:
    void add(double rows, double seconds);
    double fixed() const { return fixed_; }
    double each() const { return each_; }

   private:
    double n_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
    double fixed_ = 0, each_ = 0;  // rows cost nothing until two lengths were seen
  };
  // What of one step there was, or of several, of which the older ones count less.
  struct Amounts {
    double steps = 0, rows = 0, drafts = 0, tokens = 0;
  };

  double tokens_per_second() const;
  int64_t patience() const;  // steps without drafts until some are tried again
  void learn_times(const DraftOutcome& outcome, int64_t rows);

  int64_t steps_ = 0;
  int64_t explored_ = 0;         // steps of the current exploration; beyond its end: none
  int64_t idle_steps_ = 0;       // since a draft was made
  int64_t unpaid_steps_ = 0;     // since one was made because it pays
  int64_t fruitless_tries_ = 0;  // of drafts, since one paid
  Line verify_time_;
  double draft_time_ = 0;  // of one
  Amounts recent_;
  // Steps that were seen, by rows, and those that drafted.
  std::array<int64_t, 64> seen_{};
  int64_t seen_drafting_ = 0;
};

// How many drafts a step makes. Learns what they cost, as all sequences of a step share that; how
// often they are right is another matter for each text.
class DraftLength {
 public:
  // A fixed number of drafts.
  static DraftLength fixed(int64_t drafts) { return DraftLength(drafts, false); }
  // At most `most`, chosen for each step.
  static DraftLength automatic(int64_t most) { return DraftLength(most, true); }

  int64_t most() const { return most_; }

  // A step of so many sequences begins. It asks drafts_that_pay() once, or wants_another() before
  // each draft; `limit` is how many may be of use.
  void begin_step(int64_t sequences);
  int64_t drafts_that_pay(const DraftChances& chances, int64_t limit) const;
  bool wants_another(const DraftChances& chances, int64_t limit) const;
  // The last draft, given how likely it and all before it are right.
  bool worth_verifying(const DraftChances& chances) const;

  // Of DraftCosts, in this step; never with a fixed number.
  bool exploring() const { return automatic_ && costs().exploring(); }
  bool idle() const { return automatic_ && costs().idle(); }
  bool curious() const { return automatic_ && costs().curious(); }

  void end_step(const DraftOutcome& outcome) { costs_[size_].end_step(outcome); }
  // Of a step in which nobody could draft.
  void rest() { costs_[size_].rest(); }

 private:
  DraftLength(int64_t most, bool automatic);
  const DraftCosts& costs() const { return costs_[size_]; }

  int64_t most_;
  bool automatic_;
  // Steps of similar numbers of sequences have similar costs.
  std::array<DraftCosts, 16> costs_;
  size_t size_ = 0;  // of this step
};

}  // namespace slip
