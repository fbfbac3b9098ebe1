// How far ahead the engine drafts, as flags of every verb that generates.
#pragma once

#include <optional>
#include <string>

#include "engine/draft_length.h"
#include "engine/engine.h"
#include "slipstream/common/flags.h"

namespace slip {

struct SpeculateFlags {
  std::string speculate = "auto";  // off, auto or a number
  std::string drafter = "int8";    // keep, int8 or int4
  int64_t shortlist = 0;

  void add_to(Flags& flags);
  Status check() const;

  // After check(): what to load for it.
  void apply(EngineOptions& options) const;

  // Only how to hold the drafting layer, for verbs that count drafts themselves.
  void add_drafter_to(Flags& flags);
  void apply_drafter(WeightChoices& weights) const;

  // Nothing when speculation is off.
  std::optional<DraftLength> length() const;
};

// Why nothing was drafted though it was asked for, or "".
std::string why_no_drafts(const ModelSource& source, const SpeculateFlags& flags);

}  // namespace slip
