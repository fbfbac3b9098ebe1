#include "engine/decoder.h"

#include <algorithm>

#include "base/clock.h"

namespace slip {

Decoder::Decoder(Session& session, Sampler& sampler, DraftLength* length)
    : session_(session), sampler_(sampler), length_(session.drafter() ? length : nullptr) {
  const int64_t most = length_ ? std::min(length_->most(), session.engine().max_drafts()) : 0;
  step_.reserve(size_t(most) + 1);
  counts_.judged_at.resize(size_t(most));
  counts_.accepted_at.resize(size_t(most));
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
  settle(Next::chosen_otherwise);
  return run_step(id, wanted);
}

void Decoder::finish() { settle(Next::not_asked); }

void Decoder::settle(Next next) {
  if (row_ < 0) return;
  session_.accept(row_ + 1);
  outcome_.right = row_;
  counts_.accepted += row_;
  for (int64_t i = 0; i < row_; ++i) {
    ++counts_.judged_at[size_t(i)];
    ++counts_.accepted_at[size_t(i)];
  }
  if (next == Next::chosen_otherwise && row_ < outcome_.verified) ++counts_.judged_at[size_t(row_)];
  if (length_ && next == Next::chosen_otherwise) length_->end_step(outcome_);
  row_ = -1;
}

Status Decoder::run_step(int32_t id, int64_t wanted) {
  outcome_ = {};
  step_.assign(1, id);
  if (length_) {
    const Stopwatch clock;
    make_drafts(id, wanted);
    outcome_.draft_seconds = clock.seconds();
  }
  const Stopwatch clock;
  SLIP_TRY_STATUS(session_.verify(step_));
  outcome_.verify_seconds = clock.seconds();
  outcome_.verified = int64_t(step_.size()) - 1;
  row_ = 0;
  ++counts_.steps;
  counts_.made += outcome_.made;
  counts_.drafted += outcome_.verified;
  counts_.draft_seconds += outcome_.draft_seconds;
  counts_.verify_seconds += outcome_.verify_seconds;
  return {};
}

void Decoder::make_drafts(int32_t id, int64_t wanted) {
  // The last token wanted needs no logits behind it, and everything must fit the context.
  const int64_t most = std::min({session_.engine().max_drafts(), wanted - 1, session_.room() - 1});
  Drafter& drafter = *session_.drafter();
  length_->begin_step();
  while (outcome_.made < most && length_->wants_another()) {
    const std::optional<LogitRow> logits =
        outcome_.made == 0 ? drafter.draft_after(id) : drafter.draft_on(step_.back());
    if (!logits) break;
    const Sampler::Proposal proposal = sampler_.propose(*logits, outcome_.made);
    ++outcome_.made;
    if (!length_->drafted(proposal.margin)) break;
    step_.push_back(proposal.id);
  }
}

}  // namespace slip
