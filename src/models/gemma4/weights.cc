#include "models/gemma4/weights.h"

namespace slip::gemma4 {
namespace {

void declare_attention(const WeightPart& part, const Config& config, size_t layer,
                       AttentionWeights& attention) {
  const KindConfig& kind = config.kind_of(config.layers[layer]);
  const int64_t hidden = config.hidden;
  const int64_t q_size = config.q_heads * kind.head_dim;
  const int64_t kv_size = kind.kv_heads * kind.head_dim;
  part.matrix("q_proj", q_size, hidden, &attention.q);
  part.matrix("o_proj", hidden, q_size, &attention.o);
  part.vector("q_norm.weight", {kind.head_dim}, &attention.q_scale);
  if (int64_t(layer) >= config.owners) return;
  part.matrix("k_proj", kv_size, hidden, &attention.k);
  if (!kind.values_are_keys) part.matrix("v_proj", kv_size, hidden, &attention.v);
  part.vector("k_norm.weight", {kind.head_dim}, &attention.k_scale);
}

void declare_moe(const WeightPart& part, const Config& config, Moe& moe) {
  const ExpertsConfig& c = *config.experts;
  const Shape hidden{config.hidden};
  // The router stays exact: small, and small differences decide which experts are asked.
  part.as(std::nullopt).matrix("router.proj", c.experts, config.hidden, &moe.router);
  part.vector("router.scale", hidden, &moe.router_scale);
  part.vector("router.per_expert_scale", {c.experts}, &moe.expert_scales);
  part.vector("post_feedforward_layernorm_1.weight", hidden, &moe.dense_scale);
  part.vector("pre_feedforward_layernorm_2.weight", hidden, &moe.input_scale);
  part.vector("post_feedforward_layernorm_2.weight", hidden, &moe.output_scale);
  part.experts(config.hidden, c, moe.experts);
}

void declare_layer(const WeightPart& part, const Config& config, size_t index, Layer& layer) {
  const Shape hidden{config.hidden};
  part.vector("input_layernorm.weight", hidden, &layer.input_scale);
  part.vector("post_attention_layernorm.weight", hidden, &layer.post_attention_scale);
  part.vector("pre_feedforward_layernorm.weight", hidden, &layer.mlp_scale);
  part.vector("post_feedforward_layernorm.weight", hidden, &layer.post_mlp_scale);
  part.vector("layer_scalar", {1}, &layer.stored_factor);
  declare_attention(part.in("self_attn."), config, index, layer.attention);
  part.in("mlp.").mlp(config.hidden, config.layers[index].mlp_width, layer.mlp);
  if (config.experts) declare_moe(part, config, layer.moe.emplace());
  if (config.ple_width == 0) return;
  PerLayerInput& per_layer = layer.per_layer.emplace();
  part.matrix("per_layer_input_gate", config.ple_width, config.hidden, &per_layer.gate);
  part.matrix("per_layer_projection", config.hidden, config.ple_width, &per_layer.projection);
  part.vector("post_per_layer_input_norm.weight", hidden, &per_layer.scale);
}

}  // namespace

void declare_layers(const WeightPart& part, const Config& config, std::vector<Layer>& layers) {
  layers.resize(config.layers.size());
  for (size_t i = 0; i < layers.size(); ++i)
    declare_layer(part.in(cat("layers.", i, ".")), config, i, layers[i]);
}

void finish_layers(Memory& memory, std::vector<Layer>& layers) {
  for (Layer& layer : layers)
    memory.download(&layer.factor, layer.stored_factor.data, sizeof(float));
}

std::vector<std::string> ignored_prefixes(const Config& config, const TextPrefixes& prefixes) {
  std::vector<std::string> ignored;
  for (const char* tower : {"vision_tower.", "audio_tower.", "embed_vision.", "embed_audio.",
                            "multi_modal_projector.", "vision_embedder.", "audio_embedder."})
    for (const char* root : {"model.", ""}) ignored.push_back(cat(root, tower));
  if (config.tied_head) ignored.push_back(prefixes.head + ".");  // a copy of the embedding
  // Files hold keys and values of layers that read another's.
  for (auto i = size_t(config.owners); i < config.layers.size(); ++i)
    for (const char* unused : {"k_proj.", "v_proj.", "k_norm."})
      ignored.push_back(cat(prefixes.text, "layers.", i, ".self_attn.", unused));
  return ignored;
}

void declare_weights(const Declaration& declaration, WeightTable& table, Weights& weights) {
  const auto& [config, prefixes, choices] = declaration;
  const WeightPart text{table, prefixes.text};
  text.matrix("embed_tokens", config.vocabulary, config.hidden, &weights.embedding);
  declare_layers(text, config, weights.layers);
  text.vector("norm.weight", {config.hidden}, &weights.final_scale);
  if (config.ple_width > 0) {
    PerLayerEmbedding& per_layer = weights.per_layer.emplace();
    table.add_rows(prefixes.text + "embed_tokens_per_layer", config.ple_vocabulary,
                   config.ple_values(), &per_layer.table);
    text.matrix("per_layer_model_projection", config.ple_values(), config.hidden,
                &per_layer.projection);
    text.vector("per_layer_projection_norm.weight", {config.ple_width}, &per_layer.scale);
  }
  if (!config.tied_head || choices.int8_head)
    table.add_linear(made_head(config, prefixes, choices.int8_head), &weights.head);
}

void finish_weights(const Config& config, Memory& memory, Weights& weights) {
  if (config.tied_head && weights.head.empty()) weights.head = weights.embedding;
  finish_layers(memory, weights.layers);
}

}  // namespace slip::gemma4
