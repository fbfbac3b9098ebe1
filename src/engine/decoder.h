// Logits for one token after the other, with or without drafts: the caller chooses each token and
// cannot tell the difference but by the time it takes.
#pragma once

#include <optional>
#include <vector>

#include "engine/draft_chooser.h"
#include "engine/session.h"

namespace slip {

class Decoder {
 public:
  // Goes on from session.logits(). `sampler` proposes the drafts, as it will choose the tokens.
  // `drafting` learns; without it, and in sessions that cannot draft, there are no drafts.
  Decoder(Session& session, Sampler& sampler, SoloDrafting* drafting);

  // Of the next token.
  LogitRow logits();

  // The draft for the next token, if there is one: already computed, so free if chosen.
  std::optional<int32_t> draft() const;

  // `id` was chosen; at most `wanted` more will be.
  Status advance(int32_t id, int64_t wanted);

  // No more tokens: the session then holds all that advance() was given, and counts() are complete.
  void finish();

  const DraftCounts& counts() const { return counts_; }

 private:
  Status run_step(int32_t id, int64_t wanted);
  void make_drafts(int64_t wanted);
  // The step is over: what was chosen stays, the rest never happened.
  void settle(DraftCounts::After after);

  Session& session_;
  Sampler& sampler_;
  SoloDrafting* drafting_;
  std::vector<int32_t> step_;  // the certain token and its drafts, as verified
  int64_t row_ = -1;           // of step_, the last that was chosen; -1 before the first step
  DraftChooser::Seconds seconds_;
  DraftCounts counts_;
};

}  // namespace slip
