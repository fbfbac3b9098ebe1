#include "models/qwen3_5/weights.h"

#include <cmath>

#include "models/common/head.h"
#include "models/common/weight_part.h"

namespace slip::qwen3_5 {
namespace {

float plus_one(float value) { return value + 1.0f; }
float exponential(float value) { return std::exp(value); }

struct Part : WeightPart {
  const Config& config;
  std::optional<WeightFormat> shared_expert_format{};

  Part in(const std::string& name) const {
    return {{table, prefix + name, format}, config, shared_expert_format};
  }
};

void declare_attention(const Part& part, AttentionWeights& attention) {
  const AttentionConfig& c = part.config.attention;
  const int64_t hidden = part.config.hidden;
  part.matrix("q_proj", c.q_heads * 2 * c.head_dim, hidden, &attention.q);
  part.matrix("k_proj", c.kv_heads * c.head_dim, hidden, &attention.k);
  part.matrix("v_proj", c.kv_heads * c.head_dim, hidden, &attention.v);
  part.matrix("o_proj", hidden, c.q_heads * c.head_dim, &attention.o);
  part.vector("q_norm.weight", {c.head_dim}, &attention.q_scale, plus_one);
  part.vector("k_norm.weight", {c.head_dim}, &attention.k_scale, plus_one);
}

void declare_delta_net(const Part& part, DeltaNet& delta) {
  const DeltaNetConfig& c = part.config.delta_net;
  const int64_t hidden = part.config.hidden;
  part.matrix("in_proj_qkv", c.conv_channels(), hidden, &delta.qkv);
  part.matrix("in_proj_z", c.value_size(), hidden, &delta.z);
  part.matrix("in_proj_a", c.value_heads, hidden, &delta.a);
  part.matrix("in_proj_b", c.value_heads, hidden, &delta.b);
  part.matrix("out_proj", hidden, c.value_size(), &delta.out);
  // Files hold the convolution as [channels, 1, width]; kernels walk channels.
  part.table.add_transposed(part.prefix + "conv1d.weight", {c.conv_channels(), 1, c.conv_width},
                            &delta.conv);
  part.vector("A_log", {c.value_heads}, &delta.rate, exponential);
  part.vector("dt_bias", {c.value_heads}, &delta.dt_bias);
  part.vector("norm.weight", {c.value_dim}, &delta.norm_scale);
}

void declare_moe(const Part& part, Moe& moe) {
  const ExpertsConfig& c = *part.config.experts;
  // Router and gate stay exact: small, and small differences decide which experts are asked.
  const WeightPart exact = part.as(std::nullopt);
  exact.matrix("gate", c.experts, part.config.hidden, &moe.router);
  part.experts(part.config.hidden, c, moe.experts);
  part.in("shared_expert.")
      .as(part.shared_expert_format)
      .mlp(part.config.hidden, c.shared_width, moe.shared);
  exact.matrix("shared_expert_gate", 1, part.config.hidden, &moe.shared_gate);
}

void declare_layer(const Part& part, LayerKind kind, Layer& layer) {
  const Shape hidden{part.config.hidden};
  part.vector("input_layernorm.weight", hidden, &layer.input_scale, plus_one);
  part.vector("post_attention_layernorm.weight", hidden, &layer.post_scale, plus_one);
  switch (kind) {
    case LayerKind::delta_net:
      declare_delta_net(part.in("linear_attn."), layer.mixer.emplace<DeltaNet>());
      break;
    case LayerKind::attention:
      declare_attention(part.in("self_attn."), layer.mixer.emplace<AttentionWeights>());
      break;
  }
  if (part.config.experts) {
    declare_moe(part.in("mlp."), layer.mlp.emplace<Moe>());
  } else {
    part.in("mlp.").mlp(part.config.hidden, part.config.mlp_width, layer.mlp.emplace<GatedMlp>());
  }
}

void declare_mtp(const Part& part, Mtp& mtp) {
  const int64_t hidden = part.config.hidden;
  part.vector("pre_fc_norm_embedding.weight", {hidden}, &mtp.embedding_scale, plus_one);
  part.vector("pre_fc_norm_hidden.weight", {hidden}, &mtp.hidden_scale, plus_one);
  part.matrix("fc", hidden, 2 * hidden, &mtp.fc);
  declare_layer(part.in("layers.0."), LayerKind::attention, mtp.layer);
  part.vector("norm.weight", {hidden}, &mtp.final_scale, plus_one);
}

// The head, and the rows of it that drafting scores.
void declare_heads(const Declaration& declaration, WeightTable& table, Weights& weights) {
  const auto& [config, prefixes, wanted] = declaration;
  const WeightChoices& choices = wanted.choices;
  MadeLinear head = made_head(config, prefixes, choices.int8_head);
  if (!config.tied_head || choices.int8_head) table.add_linear(head, &weights.head);
  // Drafting has rows of its own where they are fewer or smaller than the head's.
  const bool smaller = choices.drafter == WeightFormat::int4_group ||
                       (choices.drafter == WeightFormat::int8_row && !choices.int8_head);
  if (!wanted.with_mtp || (wanted.draft_tokens.empty() && !smaller)) return;
  weights.draft_tokens = wanted.draft_tokens;
  head.name = prefixes.mtp + "draft_head";
  head.recoding = {.format = choices.drafter, .rows = weights.draft_tokens};
  if (!head.recoding.format)
    head.recoding.format = format_if(choices.int8_head, WeightFormat::int8_row);
  table.add_linear(head, &weights.draft_rows);
}

}  // namespace

Result<Prefixes> find_prefixes(const Checkpoint& checkpoint) {
  Prefixes prefixes;
  SLIP_TRY(static_cast<TextPrefixes&>(prefixes), find_text_prefixes(checkpoint, "Qwen3.5"));
  for (const std::string candidate :
       {"mtp.", "model.mtp.", "language_model.mtp.", "model.language_model.mtp."}) {
    if (!has_tensors(checkpoint, candidate)) continue;
    prefixes.mtp = candidate;
    break;
  }
  return prefixes;
}

std::vector<std::string> missing_mtp_tensors(const Config& config, const Prefixes& prefixes,
                                             const WeightSource& source) {
  WeightTable table;
  Mtp mtp;
  declare_mtp({{table, prefixes.mtp}, config}, mtp);
  return table.missing(source);
}

std::vector<std::string> ignored_prefixes(const Config& config, const Prefixes& prefixes,
                                          bool with_mtp) {
  std::vector<std::string> ignored = {"model.visual.", "visual."};
  if (config.tied_head) ignored.push_back(prefixes.head + ".");  // a copy of the embedding
  if (!with_mtp) ignored.push_back(prefixes.mtp);
  return ignored;
}

void declare_weights(const Declaration& declaration, WeightTable& table, Weights& weights) {
  const auto& [config, prefixes, wanted] = declaration;
  const WeightChoices& choices = wanted.choices;
  Part text{{table, prefixes.text}, config};
  text.shared_expert_format = choices.shared_experts;
  text.matrix("embed_tokens", config.vocabulary, config.hidden, &weights.embedding);
  weights.layers.resize(config.layers.size());
  for (size_t i = 0; i < config.layers.size(); ++i)
    declare_layer(text.in(cat("layers.", i, ".")), config.layers[i], weights.layers[i]);
  text.vector("norm.weight", {config.hidden}, &weights.final_scale, plus_one);
  declare_heads(declaration, table, weights);
  if (!wanted.with_mtp) return;
  declare_mtp({{table, prefixes.mtp, choices.drafter}, config, choices.drafter},
              weights.mtp.emplace());
}

void mark_drafting(const Prefixes& prefixes, std::vector<PlacedWeight>& placed) {
  for (PlacedWeight& weight : placed) weight.drafts = weight.name.starts_with(prefixes.mtp);
}

void finish_weights(const Config& config, Memory& memory, Weights& weights) {
  if (config.tied_head && weights.head.empty()) weights.head = weights.embedding;
  weights.draft_token_table = token_table(memory, weights.draft_tokens);
}

}  // namespace slip::qwen3_5
