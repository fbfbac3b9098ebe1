// Chooses drafts for the sequences of a step, one or many: makes as many as pay, and takes those
// that are worth verifying.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/draft_counts.h"
#include "engine/draft_length.h"
#include "engine/draft_passes.h"
#include "engine/sampling.h"

namespace slip {

class DraftChooser {
 public:
  // For steps of at most so many sequences.
  DraftChooser(const DraftLength& length, int64_t sequences);

  // The most for one of them.
  int64_t most() const { return length_.most(); }

  // May a sequence that is going to draft take passes to keep up?
  DraftPasses::KeepUp keep_up() const;

  // One that is about to decode.
  struct Sequence {
    SequenceId id;
    int32_t token;     // the next one, which is certain
    int64_t limit;     // drafts after it that may be of use; the cache has room for them
    Sampler& sampler;  // proposes them as it will choose tokens
    DraftChances& chances;
    std::vector<int32_t>& drafts;            // those that are taken, appended
    DraftCounts& counts;                     // of all that are made
    std::span<const int32_t> stop_ids{};     // nothing comes after one of them
    const Constraint* constraint = nullptr;  // what it forbids will not be chosen
  };
  // What runs beside them in the step.
  enum class Beside : uint8_t { nothing, prompts };

  // Takes up to `rows` drafts for all of them together.
  void draft(DraftPasses& passes, std::span<const Sequence> sequences, int64_t rows, Beside beside);

  // What came of them, in the same order. The seconds are those of a step that had nothing else in
  // it.
  struct Verified {
    DraftChances& chances;
    int64_t drafts, right;
  };
  struct Seconds {
    double drafting = 0, verifying = 0;
  };
  void end_step(std::span<const Verified> sequences, const std::optional<Seconds>& seconds);

 private:
  struct Walk {
    const Sequence* sequence;
    std::unique_ptr<Constraint> ahead;  // walks along the drafts
    int64_t question = 0;               // of the last round
  };
  bool wants_another(const Walk& walk) const;
  // Leaves those walks, of so many sequences, that are made only to learn what they cost.
  void keep_curious(const DraftPasses& passes, size_t sequences, Beside beside);
  // As many as a pass, and a step with so many rows to spare, can take.
  void limit_walks(const DraftPasses& passes, int64_t rows);
  // Drafts for all walks, `rows` in all, each after what was most likely before it, or one by one.
  void draft_at_once(DraftPasses& passes, int64_t rows);
  void draft_in_rounds(DraftPasses& passes, int64_t rows);
  void count_made(const Walk& walk, int64_t drafts);
  // Takes the drafter's answer; false when the sequence has enough.
  bool take(Walk& walk, const Sampler::Proposal& proposal);

  DraftLength length_;
  bool possible_ = false;        // somebody could have drafted in this step
  int64_t made_ = 0;             // in this step
  int64_t crowd_occasions_ = 0;  // for a crowd to be curious

  // Of one draft(); they keep their memory for the next.
  std::vector<Walk> walks_, going_on_;
  std::vector<DraftPasses::Question> questions_;
};

// For texts that are computed alone, one after the other: it learns from each.
struct SoloDrafting {
  explicit SoloDrafting(const DraftLength& length) : chooser(length, 1) {}

  DraftChooser chooser;
  DraftChances chances;
};

}  // namespace slip
