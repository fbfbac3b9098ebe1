// The drafts of one text: taken for a step, walked along while its tokens are chosen, and judged.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/draft_counts.h"
#include "engine/draft_length.h"
#include "engine/sampling.h"

namespace slip {

class DraftedText {
 public:
  // `sampler` proposes the drafts, as it will choose the tokens. Nothing is drafted after one of
  // `stop_ids`, or what the constraint forbids. With `most` 0 there are no drafts, and no chances.
  DraftedText(Sampler& sampler, DraftChances* chances, int64_t most,
              std::span<const int32_t> stop_ids, const Constraint* constraint)
      : sampler_(sampler),
        chances_(chances),
        most_(most),
        stop_ids_(stop_ids),
        constraint_(constraint),
        counts_(most) {
    step_.reserve(size_t(most) + 1);
  }

  Sampler& sampler() { return sampler_; }
  DraftChances& chances() { return *chances_; }
  const DraftCounts& counts() const { return counts_; }
  void count_made(int64_t drafts) { counts_.made += drafts; }

  // Drafts that can be of use after the next token: the last of the `wanted` tokens to come needs
  // no logits after it, and the context has room for `room` more.
  int64_t useful(int64_t wanted, int64_t room) const {
    return std::max<int64_t>(std::min({most_, wanted - 1, room}), 0);
  }

  // A step begins with a token that is certain. Drafts follow it; false: not this one, nor others.
  void begin(int32_t token) {
    step_.assign(1, token);
    ahead_.reset();
  }
  bool take(int32_t draft) {
    if (std::ranges::find(stop_ids_, draft) != stop_ids_.end()) return false;
    if (constraint_ && !ahead_) ahead_ = constraint_->clone();
    if (ahead_ && !ahead_->free() && !ahead_->allows(draft)) return false;
    if (ahead_) ahead_->advance(draft);
    step_.push_back(draft);
    return true;
  }
  std::span<const int32_t> step() const { return step_; }

  // The row of the step whose logits choose the next token: so many drafts were right.
  int64_t row() const { return row_; }
  // The draft for that token, if there is one.
  std::optional<int32_t> draft() const {
    const auto next = size_t(row_) + 1;
    return next < step_.size() ? std::optional(step_[next]) : std::nullopt;
  }
  // That token was chosen. True if it is the draft: the logits after it are there, in the next row.
  bool chose(int32_t id) {
    const bool right = draft() == id;
    row_ += right ? 1 : 0;
    return right;
  }

  // The step is over. The token after the drafts that were right was chosen otherwise than drafted,
  // or not asked for because the answer ended there. Only the former says that a draft was wrong.
  enum class After : uint8_t { chosen, not_asked };
  struct Verified {
    int64_t drafts, right;
  };
  Verified judge(After after) {
    const Verified verified{std::max<int64_t>(int64_t(step_.size()) - 1, 0),
                            std::exchange(row_, 0)};
    const auto [drafts, right] = verified;
    const int64_t judged = after == After::chosen ? std::min(right + 1, drafts) : right;
    counts_.add_step(drafts, judged, right);
    if (judged > 0) chances_->end_step(judged, right);
    step_.clear();
    return verified;
  }

 private:
  Sampler& sampler_;
  DraftChances* chances_;
  int64_t most_;
  std::span<const int32_t> stop_ids_;
  const Constraint* constraint_;
  std::unique_ptr<Constraint> ahead_;  // walks along the drafts
  std::vector<int32_t> step_;          // the certain token and its drafts
  int64_t row_ = 0;
  DraftCounts counts_;
};

}  // namespace slip
