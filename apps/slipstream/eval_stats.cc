#include "eval_stats.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace slip {

int32_t best_token(std::span<const float> logits) {
  return int32_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

double log_sum_exp(std::span<const float> logits) {
  const double peak = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double(logit) - peak);
  return std::log(sum) + peak;
}

double negative_log_likelihood(std::span<const float> logits, int32_t id) {
  return log_sum_exp(logits) - double(logits[size_t(id)]);
}

double kl_divergence(std::span<const float> reference, std::span<const float> other) {
  check(reference.size() == other.size(), "distributions over ", reference.size(), " and ",
        other.size(), " tokens");
  const double reference_sum = log_sum_exp(reference), other_sum = log_sum_exp(other);
  double sum = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double log_share = double(reference[i]) - reference_sum;
    sum += std::exp(log_share) * (log_share - (double(other[i]) - other_sum));
  }
  return sum;
}

double quantile(std::vector<double> values, double share) {
  check(!values.empty(), "quantile of nothing");
  const double rank = std::ceil(share * double(values.size()));
  const auto index = std::clamp<int64_t>(int64_t(rank) - 1, 0, int64_t(values.size()) - 1);
  std::nth_element(values.begin(), values.begin() + index, values.end());
  return values[size_t(index)];
}

}  // namespace slip
