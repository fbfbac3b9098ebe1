// The configurations that the ladder measures. Each keeps what the earlier ones switched on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/draft_length.h"
#include "models/model_source.h"

namespace slip {

struct Rung {
  std::string name;
  WeightChoices weights{};
  KvRecipe kv{.keys = KvCodec::bf16, .values = KvCodec::bf16};
  int activation_bytes = 2;             // of what meets integer weights
  std::optional<DraftLength> drafts{};  // as it begins, before it has learned anything
  bool same_text = false;               // as the rung before: only drafts differ
  std::string skipped{};                // why it is not measured; empty: it is
};

// `shortlist` is the number of tokens that the last drafting rung drafts among; 0: all. Rungs that
// would change nothing in this model are skipped.
Result<std::vector<Rung>> plan_ladder(const ModelSource& source, const Ops& ops, int64_t shortlist);

}  // namespace slip
