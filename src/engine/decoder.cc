#include "engine/decoder.h"

#include <algorithm>

#include "base/clock.h"

namespace slip {

Decoder::Decoder(Session& session, Sampler& sampler, SoloDrafting* drafting,
                 std::span<const int32_t> stop_ids)
    : session_(session),
      drafting_(session.can_draft() ? drafting : nullptr),
      text_(sampler, drafting_ ? &drafting_->chances : nullptr,
            drafting_ ? std::min(drafting_->chooser.most(), session.engine().max_drafts()) : 0,
            stop_ids, nullptr) {}

LogitRow Decoder::logits() {
  return session_.unaccepted() > 0 ? session_.choice(text_.row()) : session_.choice();
}

Status Decoder::advance(int32_t id, int64_t wanted) {
  if (text_.chose(id)) return {};
  settle(DraftedText::After::chosen);
  return run_step(id, wanted);
}

void Decoder::finish() { settle(DraftedText::After::not_asked); }

void Decoder::settle(DraftedText::After after) {
  if (session_.unaccepted() == 0) return;  // before the first step
  session_.accept(text_.row() + 1);
  const DraftedText::Verified verified = text_.judge(after);
  if (drafting_) drafting_->chooser.end_step({&verified, 1}, seconds_);
}

Status Decoder::run_step(int32_t id, int64_t wanted) {
  const Stopwatch clock;
  text_.begin(id);
  const int64_t made = counts().made;
  if (drafting_) {
    int64_t limit = text_.useful(wanted, session_.room() - 1);
    if (!session_.reserve(1 + limit)) limit = 0;
    const DraftChooser::Sequence sequence{session_.sequence(), limit, &text_};
    drafting_->chooser.draft(session_.draft_passes(), {&sequence, 1}, limit,
                             DraftChooser::Beside::nothing);
  }
  // Without drafts the time is the step's, with what it took to show the drafter its tokens.
  seconds_.drafting = counts().made > made ? clock.seconds() : 0;
  SLIP_TRY_STATUS(session_.verify(text_.step()));
  seconds_.verifying = clock.seconds() - seconds_.drafting;
  return {};
}

}  // namespace slip
