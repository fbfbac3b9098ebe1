// The weights of a drafter and the table that says under which names files hold them.
#pragma once

#include "models/gemma4/weights.h"
#include "models/gemma4_assistant/config.h"

namespace slip::gemma4_assistant {

// A head whose rows lie in clusters.
struct ClusteredHead {
  std::vector<int32_t> order;    // tokens, cluster by cluster
  Weight centroids;              // [clusters, hidden]
  std::vector<Weight> clusters;  // each [vocabulary / clusters, hidden]
  Tensor tokens;                 // i32 [clusters, vocabulary / clusters]: `order` for the backend
};

struct DrafterWeights {
  Weight before;  // [hidden, 2 * backbone]: embedding first, hidden state second
  std::vector<gemma4::Layer> layers;
  View final_scale;
  Weight after;  // [backbone, hidden]
  // One of these.
  Weight head;  // [draft_tokens or vocabulary, hidden]
  std::optional<ClusteredHead> clustered;
  std::vector<int32_t> draft_tokens;  // the shortlist; empty: all
  Tensor draft_token_table;           // i32 [draft_tokens]: the same, for the backend
};

// Fills the table; `weights` says what its head is like, and receives its layers at once and its
// tensors when the table is loaded.
void declare_drafter(const DrafterConfig& config, const WeightChoices& choices, WeightTable& table,
                     DrafterWeights& weights);

// What remains to be done after the table was loaded.
void finish_drafter(const DrafterConfig& config, Memory& memory, DrafterWeights& weights);

// The order of a clustered head, if the files have one: every token once.
Result<std::optional<std::vector<int32_t>>> read_token_order(const Checkpoint& checkpoint,
                                                             const DrafterConfig& config);

}  // namespace slip::gemma4_assistant
