// Logits for one token after the other, with or without drafts: the caller chooses each token and
// cannot tell the difference but by the time it takes.
#pragma once

#include <optional>

#include "engine/draft_chooser.h"
#include "engine/session.h"

namespace slip {

class Decoder {
 public:
  // Goes on from session.logits(). `sampler` proposes the drafts, as it will choose the tokens, up
  // to one of `stop_ids`. `drafting` learns; without it, and in sessions that cannot draft, there
  // are no drafts.
  Decoder(Session& session, Sampler& sampler, SoloDrafting* drafting,
          std::span<const int32_t> stop_ids = {});

  // Of the next token.
  LogitRow logits();

  // The draft for the next token, if there is one: already computed, so free if chosen.
  std::optional<int32_t> draft() const { return text_.draft(); }

  // `id` was chosen; at most `wanted` more will be.
  Status advance(int32_t id, int64_t wanted);

  // No more tokens: the session then holds all that advance() was given, and counts() are complete.
  void finish();

  const DraftCounts& counts() const { return text_.counts(); }

 private:
  Status run_step(int32_t id, int64_t wanted);
  // The step is over: what was chosen stays, the rest never happened.
  void settle(DraftedText::After after);

  Session& session_;
  SoloDrafting* drafting_;
  DraftedText text_;
  DraftChooser::Seconds seconds_;
};

}  // namespace slip
