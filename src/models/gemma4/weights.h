// The weights of a Gemma 4 model and the table that says under which names files hold them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "kernels/args.h"
#include "models/common/attention_weights.h"
#include "models/common/prefixes.h"
#include "models/common/weight_part.h"
#include "models/gemma4/config.h"
#include "models/weight_choices.h"
#include "weights/row_table.h"
#include "weights/weight_table.h"

namespace slip::gemma4 {

// Experts beside the dense MLP.
struct Moe {
  View router_scale;              // [hidden]
  Weight router;                  // [experts, hidden]
  View expert_scales;             // [experts]
  View dense_scale;               // [hidden], of the dense MLP's output
  View input_scale;               // [hidden], of what the experts see
  View output_scale;              // [hidden], of what they say
  std::vector<GatedMlp> experts;  // [experts]
};

// What a layer does with its per-layer embedding.
struct PerLayerInput {
  Weight gate;        // [ple_width, hidden]
  Weight projection;  // [hidden, ple_width]
  View scale;         // [hidden]
};

struct Layer {
  View input_scale, post_attention_scale;  // [hidden]
  View mlp_scale, post_mlp_scale;          // [hidden]
  // Without keys of its own a layer has queries alone; where values are keys it has no `v`.
  AttentionWeights attention;
  GatedMlp mlp;
  std::optional<Moe> moe;
  std::optional<PerLayerInput> per_layer;
  View stored_factor;  // [1]
  float factor = 1;    // of everything at the end of the layer: stored_factor on the host
};

// Embeddings that every layer gets of its own, apart from the hidden state.
struct PerLayerEmbedding {
  RowTable table;     // [ple_vocabulary, layers * ple_width]
  Weight projection;  // [layers * ple_width, hidden]
  View scale;         // [ple_width]
};

struct Weights {
  Weight embedding;  // [vocabulary, hidden]
  std::optional<PerLayerEmbedding> per_layer;
  std::vector<Layer> layers;
  View final_scale;  // [hidden]
  Weight head;       // [vocabulary, hidden]; the embedding itself when tied and kept as it is
};

// Prefixes of tensors that a text model does not use, so that they are not "extra".
std::vector<std::string> ignored_prefixes(const Config& config, const TextPrefixes& prefixes);

// Fills the table; `weights` receives its layers at once and its tensors when the table is loaded.
struct Declaration {
  const Config& config;
  const TextPrefixes& prefixes;
  const WeightChoices& choices;
};
void declare_weights(const Declaration& declaration, WeightTable& table, Weights& weights);

// Layers with the names that begin with the part's prefix: "layers.0.", ...
void declare_layers(const WeightPart& part, const Config& config, std::vector<Layer>& layers);

// What remains to be done after the table was loaded.
void finish_layers(Memory& memory, std::vector<Layer>& layers);
void finish_weights(const Config& config, Memory& memory, Weights& weights);

}  // namespace slip::gemma4
