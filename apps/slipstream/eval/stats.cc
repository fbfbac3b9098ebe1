#include "slipstream/eval/stats.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace slip {

Status check_logits(std::span<const float> logits) {
  // What may never be chosen is minus infinity.
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (std::ranges::all_of(logits, [](float logit) { return logit < kInfinity; })) return {};
  return error(
      "the model's logits are not numbers, so what it says would mean nothing: its weights or "
      "config.json are broken; slipstream convert check MODEL --deep looks for numbers that are "
      "none, and --ops ref tells a fault of the fast kernels");
}

int32_t best_token(std::span<const float> logits) {
  return int32_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

Distribution::Distribution(std::span<const float> logits) : logits_(logits) {
  const double peak = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double(logit) - peak);
  log_sum_ = std::log(sum) + peak;
}

double kl_divergence(const Distribution& reference, const Distribution& other) {
  check(reference.size() == other.size(), "distributions over ", reference.size(), " and ",
        other.size(), " tokens");
  double sum = 0;
  for (size_t id = 0; id < reference.size(); ++id) {
    const double log_share = reference.log_share(id);
    sum += std::exp(log_share) * (log_share - other.log_share(id));
  }
  return sum;
}

}  // namespace slip
