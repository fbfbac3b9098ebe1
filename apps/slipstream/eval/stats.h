// What rows of logits say: choices, likelihoods, distances. All sums are in double.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"

namespace slip {

// A failure if they are not numbers: a model whose weights or config.json are broken chooses token
// after token from NaN, and nothing else would say so.
Status check_logits(std::span<const float> logits);

// The most likely token; the lowest of equals.
int32_t best_token(std::span<const float> logits);

// The distribution that a row of logits stands for. Borrows the row.
class Distribution {
 public:
  explicit Distribution(std::span<const float> logits);

  size_t size() const { return logits_.size(); }
  double log_share(size_t id) const { return double(logits_[id]) - log_sum_; }

  // Nats that the token costs.
  double negative_log_likelihood(int32_t id) const { return -log_share(size_t(id)); }

 private:
  std::span<const float> logits_;
  double log_sum_;
};

// KL(reference || other) in nats: what it costs to believe the other one.
double kl_divergence(const Distribution& reference, const Distribution& other);

}  // namespace slip
