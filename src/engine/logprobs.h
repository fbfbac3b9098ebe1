// Log probabilities of a model's own distribution, before any sampling option.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace slip {

struct TokenLogprob {
  int32_t id;
  float logprob;
};

class Logprobs {
 public:
  // Copies the logits: choosing a token changes them.
  explicit Logprobs(std::span<const float> logits);

  float of(int32_t id) const;
  // The most likely first, the lower id first among equals.
  std::vector<TokenLogprob> top(int count) const;

 private:
  std::vector<float> logits_;
  double log_sum_;
};

}  // namespace slip
