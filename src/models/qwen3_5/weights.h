// The weights of a Qwen3.5 model and the table that says under which names files hold them.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "kernels/args.h"
#include "models/common/attention_weights.h"
#include "models/common/prefixes.h"
#include "models/qwen3_5/config.h"
#include "models/weight_choices.h"
#include "weights/weight_table.h"

namespace slip::qwen3_5 {

// Gated delta net.
struct DeltaNet {
  Weight qkv;       // [2 * key_heads * key_dim + value_heads * value_dim, hidden]
  Weight z;         // [value_heads * value_dim, hidden]
  Weight a, b;      // [value_heads, hidden]
  Weight out;       // [hidden, value_heads * value_dim]
  View conv;        // [conv_width, channels]
  View rate;        // [value_heads], exp(A_log)
  View dt_bias;     // [value_heads]
  View norm_scale;  // [value_dim], plain
};

// Mixture of experts beside a gated shared expert.
struct Moe {
  Weight router;                  // [experts, hidden]
  std::vector<GatedMlp> experts;  // [experts]
  GatedMlp shared;
  Weight shared_gate;  // [1, hidden]
};

struct Layer {
  View input_scale;                                // [hidden], 1 + weight
  View post_scale;                                 // [hidden], 1 + weight
  std::variant<DeltaNet, AttentionWeights> mixer;  // scales 1 + weight; queries with gates
  std::variant<GatedMlp, Moe> mlp;
};

// The layer that drafts: joins a hidden state with the next token's embedding.
struct Mtp {
  View embedding_scale;  // [hidden]
  View hidden_scale;     // [hidden]
  Weight fc;             // [hidden, 2 * hidden]: embedding first, hidden state second
  Layer layer;           // attention
  View final_scale;      // [hidden]
};

struct Weights {
  Weight embedding;  // [vocabulary, hidden]
  std::vector<Layer> layers;
  View final_scale;  // [hidden]
  Weight head;       // [vocabulary, hidden]; the embedding itself when tied and kept as it is
  std::optional<Mtp> mtp;

  // Rows of the head as drafting scores them, if not the head itself.
  std::vector<int32_t> draft_tokens;  // the shortlist; empty: all
  Tensor draft_token_table;           // i32 [draft_tokens]: the same, for the backend
  Weight draft_rows;                  // [draft_tokens or vocabulary, hidden]

  const Weight& draft_head() const { return draft_rows.empty() ? head : draft_rows; }
};

// Which weights to load, and as what.
struct Wanted {
  bool with_mtp = false;
  WeightChoices choices{};
  std::vector<int32_t> draft_tokens{};  // the shortlist; empty: drafting scores the whole head
};

struct Prefixes : TextPrefixes {
  std::string mtp = "mtp.";
};
Result<Prefixes> find_prefixes(const Checkpoint& checkpoint);

// Which tensors of an MTP layer the files lack.
std::vector<std::string> missing_mtp_tensors(const Config& config, const Prefixes& prefixes,
                                             const WeightSource& source);

// Prefixes of tensors that a text model does not use, so that they are not "extra".
std::vector<std::string> ignored_prefixes(const Config& config, const Prefixes& prefixes,
                                          bool with_mtp);

// Fills the table; `weights` receives its layers at once and its tensors when the table is loaded.
struct Declaration {
  const Config& config;
  const Prefixes& prefixes;
  const Wanted& wanted;
};
void declare_weights(const Declaration& declaration, WeightTable& table, Weights& weights);

// Marks what belongs to the MTP layer.
void mark_drafting(const Prefixes& prefixes, std::vector<PlacedWeight>& placed);

// What remains to be done after the table was loaded: share a tied head, hand over the shortlist.
void finish_weights(const Config& config, Memory& memory, Weights& weights);

}  // namespace slip::qwen3_5
