#include "models/qwen3_5/weights.h"

#include <cmath>

namespace slip::qwen3_5 {
namespace {

float plus_one(float value) { return value + 1.0f; }
float exponential(float value) { return std::exp(value); }

void declare_attention(const Config& config, const std::string& prefix, WeightTable& table,
                       Attention& attention) {
  const AttentionConfig& c = config.attention;
  table.add_linear(prefix + "q_proj", c.q_heads * 2 * c.head_dim, config.hidden, &attention.q);
  table.add_linear(prefix + "k_proj", c.kv_heads * c.head_dim, config.hidden, &attention.k);
  table.add_linear(prefix + "v_proj", c.kv_heads * c.head_dim, config.hidden, &attention.v);
  table.add_linear(prefix + "o_proj", config.hidden, c.q_heads * c.head_dim, &attention.o);
  table.add_vector(prefix + "q_norm.weight", {c.head_dim}, &attention.q_scale, plus_one);
  table.add_vector(prefix + "k_norm.weight", {c.head_dim}, &attention.k_scale, plus_one);
}

void declare_delta_net(const Config& config, const std::string& prefix, WeightTable& table,
                       DeltaNet& delta) {
  const DeltaNetConfig& c = config.delta_net;
  table.add_linear(prefix + "in_proj_qkv", c.conv_channels(), config.hidden, &delta.qkv);
  table.add_linear(prefix + "in_proj_z", c.value_size(), config.hidden, &delta.z);
  table.add_linear(prefix + "in_proj_a", c.value_heads, config.hidden, &delta.a);
  table.add_linear(prefix + "in_proj_b", c.value_heads, config.hidden, &delta.b);
  table.add_linear(prefix + "out_proj", config.hidden, c.value_size(), &delta.out);
  table.add_vector(prefix + "conv1d.weight", {c.conv_channels(), 1, c.conv_width}, &delta.conv);
  table.add_vector(prefix + "A_log", {c.value_heads}, &delta.rate, exponential);
  table.add_vector(prefix + "dt_bias", {c.value_heads}, &delta.dt_bias);
  table.add_vector(prefix + "norm.weight", {c.value_dim}, &delta.norm_scale);
}

void declare_mlp(const std::string& prefix, int64_t hidden, int64_t width, WeightTable& table,
                 GatedMlp& mlp) {
  table.add_linear(prefix + "gate_proj", width, hidden, &mlp.gate);
  table.add_linear(prefix + "up_proj", width, hidden, &mlp.up);
  table.add_linear(prefix + "down_proj", hidden, width, &mlp.down);
}

void declare_moe(const Config& config, const std::string& prefix, WeightTable& table, Moe& moe) {
  const ExpertsConfig& c = *config.experts;
  table.add_linear(prefix + "gate", c.experts, config.hidden, &moe.router);
  moe.experts.resize(size_t(c.experts));
  for (size_t e = 0; e < moe.experts.size(); ++e)
    declare_mlp(cat(prefix, "experts.", e, "."), config.hidden, c.width, table, moe.experts[e]);
  declare_mlp(prefix + "shared_expert.", config.hidden, c.shared_width, table, moe.shared);
  table.add_linear(prefix + "shared_expert_gate", 1, config.hidden, &moe.shared_gate);
}

void declare_layer(const Config& config, LayerKind kind, const std::string& prefix,
                   WeightTable& table, Layer& layer) {
  table.add_vector(prefix + "input_layernorm.weight", {config.hidden}, &layer.input_scale,
                   plus_one);
  table.add_vector(prefix + "post_attention_layernorm.weight", {config.hidden}, &layer.post_scale,
                   plus_one);
  switch (kind) {
    case LayerKind::delta_net:
      declare_delta_net(config, prefix + "linear_attn.", table, layer.mixer.emplace<DeltaNet>());
      break;
    case LayerKind::attention:
      declare_attention(config, prefix + "self_attn.", table, layer.mixer.emplace<Attention>());
      break;
  }
  if (config.experts) {
    declare_moe(config, prefix + "mlp.", table, layer.mlp.emplace<Moe>());
  } else {
    declare_mlp(prefix + "mlp.", config.hidden, config.mlp_width, table,
                layer.mlp.emplace<GatedMlp>());
  }
}

void declare_mtp(const Config& config, const std::string& prefix, WeightTable& table, Mtp& mtp) {
  const Shape hidden{config.hidden};
  table.add_vector(prefix + "pre_fc_norm_embedding.weight", hidden, &mtp.embedding_scale, plus_one);
  table.add_vector(prefix + "pre_fc_norm_hidden.weight", hidden, &mtp.hidden_scale, plus_one);
  table.add_linear(prefix + "fc", config.hidden, 2 * config.hidden, &mtp.fc);
  declare_layer(config, LayerKind::attention, prefix + "layers.0.", table, mtp.layer);
  table.add_vector(prefix + "norm.weight", hidden, &mtp.final_scale, plus_one);
}

bool has_prefix(const Checkpoint& checkpoint, const std::string& prefix) {
  for (const StoredTensor& tensor : checkpoint.tensors())
    if (tensor.name.starts_with(prefix)) return true;
  return false;
}

// Files hold the convolution as [channels, 1, width]; kernels walk channels, so they want
// [width, channels].
void transpose_conv(const DeltaNetConfig& config, View& conv) {
  const int64_t channels = config.conv_channels();
  std::vector<float> stored(conv.f32(), conv.f32() + conv.count());
  conv = conv.reshaped({config.conv_width, channels});
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t w = 0; w < config.conv_width; ++w)
      conv.f32()[w * channels + c] = stored[size_t(c * config.conv_width + w)];
}

}  // namespace

Result<Prefixes> find_prefixes(const Checkpoint& checkpoint) {
  Prefixes prefixes;
  const std::vector<std::string> text = {"model.language_model.", "language_model.model.",
                                         "model."};
  bool found = false;
  for (const std::string& candidate : text) {
    if (!checkpoint.find(candidate + "embed_tokens.weight")) continue;
    prefixes.text = candidate;
    found = true;
    break;
  }
  if (!found)
    return error(checkpoint.folder().string(), ": no tensor embed_tokens.weight under any of ",
                 text[0], " ", text[1], " ", text[2], "; is this a Qwen3.5 text model?");
  if (checkpoint.find("language_model.lm_head.weight")) prefixes.head = "language_model.lm_head";
  if (checkpoint.find("model.lm_head.weight")) prefixes.head = "model.lm_head";
  for (const std::string candidate :
       {"mtp.", "model.mtp.", "language_model.mtp.", "model.language_model.mtp."}) {
    if (!has_prefix(checkpoint, candidate)) continue;
    prefixes.mtp = candidate;
    break;
  }
  return prefixes;
}

bool has_mtp_tensors(const Checkpoint& checkpoint, const Prefixes& prefixes) {
  return has_prefix(checkpoint, prefixes.mtp);
}

std::vector<std::string> ignored_prefixes(const Config& config, const Prefixes& prefixes,
                                          bool with_mtp) {
  std::vector<std::string> ignored = {"model.visual.", "visual."};
  if (config.tied_head) ignored.push_back(prefixes.head + ".");  // a copy of the embedding
  if (!with_mtp) ignored.push_back(prefixes.mtp);
  return ignored;
}

void declare_weights(const Config& config, const Prefixes& prefixes, bool with_mtp,
                     WeightTable& table, Weights& weights) {
  table.add_linear(prefixes.text + "embed_tokens", config.vocabulary, config.hidden,
                   &weights.embedding);
  weights.layers.resize(config.layers.size());
  for (size_t i = 0; i < config.layers.size(); ++i)
    declare_layer(config, config.layers[i], cat(prefixes.text, "layers.", i, "."), table,
                  weights.layers[i]);
  table.add_vector(prefixes.text + "norm.weight", {config.hidden}, &weights.final_scale, plus_one);
  if (!config.tied_head)
    table.add_linear(prefixes.head, config.vocabulary, config.hidden, &weights.head);
  if (with_mtp) declare_mtp(config, prefixes.mtp, table, weights.mtp.emplace());
}

void finish_weights(const Config& config, Weights& weights) {
  if (config.tied_head) weights.head = weights.embedding;
  for (Layer& layer : weights.layers)
    if (auto* delta = std::get_if<DeltaNet>(&layer.mixer))
      transpose_conv(config.delta_net, delta->conv);
}

}  // namespace slip::qwen3_5
