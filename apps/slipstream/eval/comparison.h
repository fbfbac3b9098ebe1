// How far one model is from another over the same text.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "engine/session.h"
#include "slipstream/common/numbers.h"
#include "slipstream/eval/eval.h"
#include "slipstream/eval/stats.h"

namespace slip {

// Two models over the same text.
class Comparison {
 public:
  Comparison(Engine& reference, Engine& candidate) : reference_(reference), candidate_(candidate) {}

  Status add_window(std::span<const int32_t> ids) {
    reference_.clear();
    candidate_.clear();
    // In pieces, so that only these many rows of the vocabulary's width are kept.
    constexpr size_t kRows = 64;
    for (size_t begin = 0; begin < ids.size(); begin += kRows)
      SLIP_TRY_STATUS(add_piece(ids, begin, std::min(kRows, ids.size() - begin)));
    return {};
  }

  int64_t positions() const { return int64_t(divergences_.size()); }
  int64_t predicted() const { return predicted_; }
  double mean_kl() const {
    double sum = 0;
    for (const double divergence : divergences_) sum += divergence;
    return sum / double(positions());
  }
  double kl_quantile(double share) const { return quantile(divergences_, share); }
  double agreement() const { return double(agreed_) / double(positions()); }
  double reference_perplexity() const { return std::exp(reference_nll_ / double(predicted_)); }
  double candidate_perplexity() const { return std::exp(candidate_nll_ / double(predicted_)); }
  double perplexity_change() const {
    return std::expm1((candidate_nll_ - reference_nll_) / double(predicted_));
  }

 private:
  Status add_piece(std::span<const int32_t> ids, size_t begin, size_t count) {
    const std::span<const int32_t> piece = ids.subspan(begin, count);
    kept_.clear();
    SLIP_TRY_STATUS(feed_rows(reference_, piece,
                              [&](int64_t, std::span<const float> logits, std::span<const float>) {
                                kept_.insert(kept_.end(), logits.begin(), logits.end());
                              }));
    return feed_rows(candidate_, piece,
                     [&](int64_t position, std::span<const float> logits, std::span<const float>) {
                       const size_t row = size_t(position) - begin;
                       const auto next = size_t(position) + 1;
                       const auto kept =
                           std::span(kept_).subspan(row * logits.size(), logits.size());
                       agreed_ += best_token(kept) == best_token(logits);
                       compare(Distribution(kept), Distribution(logits),
                               next < ids.size() ? std::optional(ids[next]) : std::nullopt);
                     });
  }

  void compare(const Distribution& reference, const Distribution& candidate,
               std::optional<int32_t> next) {
    divergences_.push_back(kl_divergence(reference, candidate));
    if (!next) return;
    ++predicted_;
    reference_nll_ += reference.negative_log_likelihood(*next);
    candidate_nll_ += candidate.negative_log_likelihood(*next);
  }

  Session reference_, candidate_;
  std::vector<float> kept_;          // [rows, vocabulary], the reference's logits of a piece
  std::vector<double> divergences_;  // of each position
  int64_t agreed_ = 0, predicted_ = 0;
  double reference_nll_ = 0, candidate_nll_ = 0;
};

}  // namespace slip
