// What rows of logits say: choices, likelihoods, distances. All sums are in double.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace slip {

// The most likely token; the lowest of equals.
int32_t best_token(std::span<const float> logits);

double log_sum_exp(std::span<const float> logits);

// Nats that `id` costs.
double negative_log_likelihood(std::span<const float> logits, int32_t id);

// KL(reference || other) in nats: how much the other distribution misleads who believes it.
double kl_divergence(std::span<const float> reference, std::span<const float> other);

// The least value that at least `share` of the values do not exceed. Needs one value.
double quantile(std::vector<double> values, double share);

}  // namespace slip
