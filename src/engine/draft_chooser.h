// Chooses drafts for the sequences of a step, one or many: makes as many as pay, and takes those
// that are worth verifying.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/draft_length.h"
#include "engine/draft_passes.h"
#include "engine/drafted_text.h"

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
    int64_t limit;      // drafts that may be of use; the cache has room for them
    DraftedText* text;  // takes them
  };
  // What runs beside them in the step.
  enum class Beside : uint8_t { nothing, prompts };

  // Takes up to `rows` drafts for all of them together.
  void draft(DraftPasses& passes, std::span<const Sequence> sequences, int64_t rows, Beside beside);

  // What came of them. The seconds are those of a step that had nothing else in it.
  struct Seconds {
    double drafting = 0, verifying = 0;
  };
  void end_step(std::span<const DraftedText::Verified> sequences,
                const std::optional<Seconds>& seconds);

 private:
  struct Walk : Sequence {
    int64_t question = 0;  // of the last round
  };
  bool wants_another(const Sequence& sequence) const;
  // Leaves those walks, of so many sequences, that are made only to learn what they cost.
  void keep_curious(const DraftPasses& passes, size_t sequences, Beside beside);
  // As many as a pass, and a step with so many rows to spare, can take.
  void limit_walks(const DraftPasses& passes, int64_t rows);
  // Drafts for all walks, `rows` in all, each after what was most likely before it, or one by one.
  void draft_at_once(DraftPasses& passes, int64_t rows);
  void draft_in_rounds(DraftPasses& passes, int64_t rows);
  // Takes the drafter's answer; false when the text has enough.
  bool take(DraftedText& text, const Sampler::Proposal& proposal) const;

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
