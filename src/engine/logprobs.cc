#include "engine/logprobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace slip {

Logprobs::Logprobs(std::span<const float> logits) : logits_(logits.begin(), logits.end()) {
  for (float& logit : logits_)
    if (std::isnan(logit)) logit = -INFINITY;  // of a damaged model; sorting needs an order
  const double peak = *std::ranges::max_element(logits_);
  double sum = 0;
  for (const float logit : logits_) sum += std::exp(double(logit) - peak);
  log_sum_ = peak + std::log(sum);
}

float Logprobs::of(int32_t id) const { return float(double(logits_[size_t(id)]) - log_sum_); }

std::vector<TokenLogprob> Logprobs::top(int count) const {
  std::vector<int32_t> ids(logits_.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto kept = ids.begin() + std::min<int64_t>(std::max(count, 0), int64_t(ids.size()));
  std::partial_sort(ids.begin(), kept, ids.end(), [&](int32_t a, int32_t b) {
    const float left = logits_[size_t(a)], right = logits_[size_t(b)];
    return left > right || (left == right && a < b);
  });
  std::vector<TokenLogprob> best;
  for (auto id = ids.begin(); id != kept; ++id) best.push_back({*id, of(*id)});
  return best;
}

}  // namespace slip
