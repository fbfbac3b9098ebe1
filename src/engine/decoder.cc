#include "engine/decoder.h"

#include <algorithm>

#include "base/clock.h"

namespace slip {

Decoder::Decoder(Session& session, Sampler& sampler, SoloDrafting* drafting)
    : session_(session), sampler_(sampler), drafting_(session.can_draft() ? drafting : nullptr) {
  const int64_t most =
      drafting_ ? std::min(drafting_->chooser.most(), session.engine().max_drafts()) : 0;
  step_.reserve(size_t(most) + 1);
  counts_ = DraftCounts(most);
}

LogitRow Decoder::logits() { return row_ < 0 ? session_.choice() : session_.choice(row_); }

std::optional<int32_t> Decoder::draft() const {
  const auto next = size_t(row_ + 1);
  if (row_ < 0 || next >= step_.size()) return std::nullopt;
  return step_[next];
}

Status Decoder::advance(int32_t id, int64_t wanted) {
  if (draft() == id) {
    ++row_;
    return {};
  }
  settle(DraftCounts::After::chosen);
  return run_step(id, wanted);
}

void Decoder::finish() { settle(DraftCounts::After::not_asked); }

void Decoder::settle(DraftCounts::After after) {
  if (row_ < 0) return;
  session_.accept(row_ + 1);
  const auto drafts = int64_t(step_.size()) - 1;
  counts_.add_step(drafts, row_, after);
  if (drafting_ && after == DraftCounts::After::chosen) {
    const DraftChooser::Verified verified{drafting_->chances, drafts, row_};
    drafting_->chooser.end_step({&verified, 1}, seconds_);
  }
  row_ = -1;
}

Status Decoder::run_step(int32_t id, int64_t wanted) {
  const Stopwatch clock;
  step_.assign(1, id);
  const int64_t made = counts_.made;
  if (drafting_) make_drafts(wanted);
  // Without drafts the time is the step's, with what it took to show the drafter its tokens.
  seconds_.drafting = counts_.made > made ? clock.seconds() : 0;
  SLIP_TRY_STATUS(session_.verify(step_));
  seconds_.verifying = clock.seconds() - seconds_.drafting;
  row_ = 0;
  return {};
}

void Decoder::make_drafts(int64_t wanted) {
  const int64_t most =
      std::min(session_.engine().max_drafts(), useful_drafts(wanted, session_.room() - 1));
  const DraftChooser::Sequence sequence{.id = session_.sequence(),
                                        .token = step_.front(),
                                        .limit = most > 0 && session_.reserve(1 + most) ? most : 0,
                                        .sampler = sampler_,
                                        .chances = drafting_->chances,
                                        .drafts = step_,
                                        .counts = counts_};
  drafting_->chooser.draft(session_.draft_passes(), {&sequence, 1}, most,
                           DraftChooser::Beside::nothing);
}

}  // namespace slip
