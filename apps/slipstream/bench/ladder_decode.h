// One answer of the ladder: greedy, timed from the first token that takes a step.
#pragma once

#include <optional>
#include <random>
#include <span>

#include "engine/generate.h"

namespace slip {

// Accepts drafts at random, for weights that mean nothing: all the work is done as ever, only the
// token that was chosen is replaced.
class SimulatedAcceptance {
 public:
  explicit SimulatedAcceptance(double chance) : accepts_(chance) {}

  // Without a draft the model's own choice stands.
  int32_t choose(int32_t own, std::optional<int32_t> draft, int64_t vocabulary);

 private:
  std::bernoulli_distribution accepts_;
  std::mt19937_64 random_{20260101};
};

struct DecodeRequest {
  std::span<const int32_t> prompt;
  int64_t max_tokens = 0;
  std::span<const int32_t> stop_ids{};       // the one that ends the answer is part of it
  int64_t usable_tokens = 0;                 // of the vocabulary; the rest is padding
  SoloDrafting* drafts = nullptr;            // learns
  SimulatedAcceptance* simulated = nullptr;  // null: tokens are the model's
};

// The ids begin with the token that the prompt alone decides. The time and the counts do not
// include it, so that without drafts there is exactly one token per step.
Result<GenerateResult> decode_greedily(Session& session, const DecodeRequest& request);

// Tokens that took a step, or a part of one.
inline int64_t tokens_of_steps(const GenerateResult& result) {
  return int64_t(result.ids.size()) - 1;
}

}  // namespace slip
