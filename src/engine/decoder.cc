#include "engine/decoder.h"

#include <algorithm>

#include "base/clock.h"

namespace slip {

Decoder::Decoder(Session& session, Sampler& sampler, DraftLength* length)
    : session_(session), sampler_(sampler), length_(session.can_draft() ? length : nullptr) {
  const int64_t most = length_ ? std::min(length_->most(), session.engine().max_drafts()) : 0;
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
  outcome_.right = row_;
  counts_.add_step(outcome_.verified, row_, after);
  if (length_ && after == DraftCounts::After::chosen) length_->end_step(outcome_);
  row_ = -1;
}

Status Decoder::run_step(int32_t id, int64_t wanted) {
  outcome_ = {};
  step_.assign(1, id);
  if (length_) {
    const Stopwatch clock;
    make_drafts(wanted);
    outcome_.draft_seconds = clock.seconds();
  }
  const Stopwatch clock;
  SLIP_TRY_STATUS(session_.verify(step_));
  outcome_.verify_seconds = clock.seconds();
  outcome_.verified = int64_t(step_.size()) - 1;
  row_ = 0;
  counts_.made += outcome_.made;
  return {};
}

void Decoder::make_drafts(int64_t wanted) {
  const int64_t most =
      std::min(session_.engine().max_drafts(), useful_drafts(wanted, session_.room() - 1));
  length_->begin_step();
  if (session_.drafts_better_at_once() && sampler_.goes_by_peaks())
    return make_drafts_at_once(most);
  while (outcome_.made < most && length_->wants_another()) {
    const std::optional<LogitRow> logits = session_.draft(step_);
    if (!logits) break;
    const Sampler::Proposal proposal = sampler_.propose(*logits, outcome_.made);
    ++outcome_.made;
    if (!take(proposal)) break;
  }
}

void Decoder::make_drafts_at_once(int64_t most) {
  const std::span<const Peak> drafts =
      session_.draft_at_once(step_.front(), length_->drafts_that_pay(most));
  outcome_.made = int64_t(drafts.size());
  for (const Peak& peak : drafts) {
    const std::optional<Sampler::Proposal> proposal = sampler_.propose(peak);
    if (!proposal || !take(*proposal)) break;
  }
}

bool Decoder::take(const Sampler::Proposal& proposal) {
  if (!length_->drafted(proposal.margin)) return false;
  step_.push_back(proposal.id);
  return true;
}

}  // namespace slip
