// Chooses drafts for the requests of a step: for each as many as pay.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "engine/batch_drafter.h"
#include "engine/job.h"

namespace slip {

class BatchDrafting {
 public:
  // At most `most` drafts per request; `always`: so many in every step.
  BatchDrafting(Engine& engine, int64_t most, bool always);

  BatchDrafter& drafter() { return drafter_; }
  int64_t most() const { return most_; }

  // Tokens that are now part of a job's sequence, with their hidden states.
  void follow(const Job& job, const View& hidden, std::span<const int32_t> ids);

  // What runs beside the rows that decode.
  enum class Beside : uint8_t { nothing, prompts };

  // Fills `drafts` of jobs that are about to decode: up to `limits` tokens each, `rows` in all.
  void draft(std::span<Job* const> jobs, std::span<const int64_t> limits, int64_t rows,
             Beside beside);

  // What came of them. `verify_seconds`: of a step that had nothing else in it.
  void end_step(std::span<Job* const> jobs, std::span<const int64_t> right,
                std::optional<double> verify_seconds);

 private:
  struct Walk {
    Job* job;
    int64_t limit;
    std::unique_ptr<Constraint> ahead;  // walks along the drafts
    int64_t question = 0;               // of the last round
  };
  bool wants_another(const Walk& walk) const;
  // Leaves those walks that are made only to learn what they cost.
  void keep_curious(size_t jobs, Beside beside);
  // As many as a pass, and a step with so many rows to spare, can take.
  void limit_walks(int64_t rows);
  // Drafts for all walks, `rows` in all, each after what was most likely before it, or one by one.
  void draft_at_once(int64_t rows);
  void draft_in_rounds(int64_t rows);
  // Takes the drafter's answer; false when the job has enough.
  bool take(Walk& walk, const Sampler::Proposal& proposal);

  // Steps of similar numbers of requests have similar costs.
  DraftCosts& costs_for(size_t jobs);

  BatchDrafter drafter_;
  int64_t most_;
  bool always_;
  std::array<DraftCosts, 16> costs_;
  const DraftCosts* current_ = &costs_.front();  // of the last step
  bool possible_ = false;                        // somebody could have drafted in it
  DraftOutcome outcome_;
  int64_t crowd_occasions_ = 0;  // for a crowd to be curious

  // Of one draft(); they keep their memory for the next.
  std::vector<Walk> walks_, going_on_;
  std::vector<BatchDrafter::Question> questions_;
};

}  // namespace slip
