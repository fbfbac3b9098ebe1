// From logits to a token: greedy or random, reproducible from the seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/logits.h"
#include "grammar/constraint.h"

namespace slip {

struct SamplingOptions {
  float temperature = 1.0f;  // 0: always the most likely token
  int top_k = 0;             // 0: all
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;  // on every token seen, prompt included
  float presence_penalty = 0.0f;    // on generated tokens
  float frequency_penalty = 0.0f;   // on generated tokens, per occurrence
  std::vector<std::pair<int32_t, float>> logit_bias{};
  uint64_t seed = 0;

  bool greedy() const { return temperature <= 0; }
};

// What may not be chosen at one place. Where a constraint leaves banned tokens alone, they stay.
struct TokenFilter {
  Constraint* constraint = nullptr;
  std::span<const int32_t> banned{};

  bool allows(int32_t id) const;
  // Puts everything else out of reach.
  void apply(std::span<float> logits) const;
};

// The state of one request's sampling. The i-th token depends on the logits, the options, the
// history and (seed, i) alone, so a request gives the same answer alone and in a batch.
class Sampler {
 public:
  // Tokens from `usable` on (padding of the vocabulary) are never chosen.
  Sampler(const SamplingOptions& options, int64_t vocabulary, int64_t usable);

  // What one takes at the most, whatever its options.
  static uint64_t most_bytes(int64_t vocabulary) {
    return uint64_t(vocabulary) * (sizeof(uint8_t) + 2 * sizeof(int32_t) + sizeof(Candidate));
  }

  void see_prompt(std::span<const int32_t> ids);

  // Chooses from `logits` [vocabulary], which it may change, and remembers the choice.
  int32_t next(std::span<float> logits);
  // The same among the tokens that the filter allows.
  int32_t next(const LogitRow& logits, const TokenFilter& filter = {});

  // What next() would choose from `logits` if it were `ahead` tokens further on: drafts made with
  // the random numbers of the tokens they stand for are right more often. Changes `logits`,
  // remembers nothing.
  struct Proposal {
    int32_t id;
    float margin;  // how far its logit is above the best other one; negative if it is not the best
  };
  Proposal propose(std::span<float> logits, int64_t ahead);
  Proposal propose(const LogitRow& logits, int64_t ahead);

  // Whether the peak of a row usually decides what next() would choose. If this one does, what it
  // proposes.
  bool goes_by_peaks() const;
  std::optional<Proposal> propose(const Peak& peak) const;

 private:
  // Whether a peak with this id decides, in one that goes by peaks.
  bool decides(int32_t id) const;
  // The peak of a row, where that is all it takes.
  std::optional<Peak> deciding_peak(const LogitRow& logits) const;
  // The best `wanted` that the filter allows, falling, from the candidates of a row: empty where
  // there are none, or where others might come before one of them. Valid until the next call.
  std::span<const Candidate> best_found(const LogitRow& logits, const TokenFilter& filter,
                                        size_t wanted);
  // How many of the best a token is chosen among; 0: all.
  size_t choices() const { return options_.greedy() ? 1 : size_t(std::max(options_.top_k, 0)); }

  // Whether what was seen before matters.
  bool adjusts() const;
  // Whether no adjustment raises a logit.
  bool only_lowers() const;
  void adjust(std::span<float> logits) const;
  float adjusted(const Candidate& candidate) const;
  float penalized(int32_t id, float logit) const;

  int32_t remember(int32_t id);
  int32_t choose(std::span<const float> logits, int64_t index);
  // From the choices() largest, which `best` holds.
  int32_t choose(std::span<const Candidate> best, int64_t index);
  void keep_top_k(std::span<const float> logits);
  int32_t draw(int64_t index);  // from candidates_

  SamplingOptions options_;
  int64_t usable_;
  int64_t chosen_ = 0;
  // What was seen, only if it adjusts().
  std::vector<uint8_t> in_prompt_;     // [vocabulary]
  std::vector<int32_t> counts_;        // [vocabulary], generated
  std::vector<int32_t> seen_;          // distinct ids with in_prompt_ or counts_
  std::vector<Candidate> candidates_;  // logits, later probabilities; reused, only if it draws
  Candidates best_{};                  // of best_found()
};

}  // namespace slip
