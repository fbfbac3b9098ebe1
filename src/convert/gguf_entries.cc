#include "convert/gguf_entries.h"

#include <cmath>

namespace slip {
namespace {

using qwen3_5::Config;
using qwen3_5::DeltaNetConfig;
using qwen3_5::LayerKind;

float plus_one(float value) { return value + 1.0f; }
float negative_exponential(float value) { return -std::exp(value); }

// Place h of the file takes this head of the source.
int64_t tiled_head(const DeltaNetConfig& delta, int64_t place) {
  const int64_t per_key = delta.value_heads / delta.key_heads;
  return place % delta.key_heads * per_key + place / delta.key_heads;
}

// `kept` rows stay in front, then heads of `width` rows follow in the file's order.
RowOrder tiled_rows(const DeltaNetConfig& delta, int64_t kept, int64_t width) {
  if (delta.value_heads == delta.key_heads) return {};
  RowOrder order;
  for (int64_t row = 0; row < kept; ++row) order.push_back(row);
  for (int64_t place = 0; place < delta.value_heads; ++place)
    for (int64_t row = 0; row < width; ++row)
      order.push_back(kept + tiled_head(delta, place) * width + row);
  return order;
}

ColumnOrder tiled_columns(const DeltaNetConfig& delta) {
  ColumnOrder order{.heads = {}, .width = delta.value_dim};
  if (delta.value_heads == delta.key_heads) return order;
  for (int64_t place = 0; place < delta.value_heads; ++place)
    order.heads.push_back(tiled_head(delta, place));
  return order;
}

// Builds the entries of one block, or of the whole model.
class Block {
 public:
  Block(std::vector<GgufEntry>& entries, const Config& config, std::string source, std::string name)
      : entries_(entries), config_(config), source_(std::move(source)), name_(std::move(name)) {}

  GgufEntry& matrix(const std::string& name, const std::string& module, int64_t out, int64_t in) {
    GgufEntry entry;
    entry.name = name_ + name + ".weight";
    entry.modules = {source_ + module};
    entry.out = out;
    entry.in = in;
    return entries_.emplace_back(std::move(entry));
  }
  GgufEntry& vector(const std::string& name, const std::string& tensor, std::vector<int64_t> shape,
                    float (*map)(float) = nullptr) {
    GgufEntry entry;
    entry.name = name_ + name;
    entry.vector = source_ + tensor;
    entry.shape = std::move(shape);
    entry.map = map;
    return entries_.emplace_back(std::move(entry));
  }
  void norm(const std::string& name, const std::string& module, int64_t size) {
    vector(name + ".weight", module + ".weight", {size}, plus_one);
  }

  void layer(LayerKind kind) {
    norm("attn_norm", "input_layernorm", config_.hidden);
    norm("post_attention_norm", "post_attention_layernorm", config_.hidden);
    if (kind == LayerKind::attention) {
      attention();
    } else {
      delta_net();
    }
    if (config_.experts) {
      experts();
    } else {
      mlp("ffn_", "", "mlp.", config_.mlp_width);
    }
  }

 private:
  void attention() {
    const qwen3_5::AttentionConfig& c = config_.attention;
    matrix("attn_q", "self_attn.q_proj", c.q_heads * 2 * c.head_dim, config_.hidden);
    matrix("attn_k", "self_attn.k_proj", c.kv_heads * c.head_dim, config_.hidden);
    matrix("attn_v", "self_attn.v_proj", c.kv_heads * c.head_dim, config_.hidden);
    matrix("attn_output", "self_attn.o_proj", config_.hidden, c.q_heads * c.head_dim);
    norm("attn_q_norm", "self_attn.q_norm", c.head_dim);
    norm("attn_k_norm", "self_attn.k_norm", c.head_dim);
  }

  void delta_net() {
    const DeltaNetConfig& c = config_.delta_net;
    const RowOrder one_row = tiled_rows(c, 0, 1);
    const RowOrder channels = tiled_rows(c, 2 * c.key_size(), c.value_dim);
    matrix("attn_qkv", "linear_attn.in_proj_qkv", c.conv_channels(), config_.hidden).rows =
        channels;
    matrix("attn_gate", "linear_attn.in_proj_z", c.value_size(), config_.hidden).rows =
        tiled_rows(c, 0, c.value_dim);
    matrix("ssm_alpha", "linear_attn.in_proj_a", c.value_heads, config_.hidden).rows = one_row;
    matrix("ssm_beta", "linear_attn.in_proj_b", c.value_heads, config_.hidden).rows = one_row;
    matrix("ssm_out", "linear_attn.out_proj", config_.hidden, c.value_size()).columns =
        tiled_columns(c);
    vector("ssm_conv1d.weight", "linear_attn.conv1d.weight", {c.conv_channels(), 1, c.conv_width})
        .rows = channels;
    vector("ssm_a", "linear_attn.A_log", {c.value_heads}, negative_exponential).rows = one_row;
    vector("ssm_dt.bias", "linear_attn.dt_bias", {c.value_heads}).rows = one_row;
    vector("ssm_norm.weight", "linear_attn.norm.weight", {c.value_dim});
  }

  void mlp(const std::string& name, const std::string& suffix, const std::string& module,
           int64_t width) {
    matrix(name + "gate" + suffix, module + "gate_proj", width, config_.hidden);
    matrix(name + "up" + suffix, module + "up_proj", width, config_.hidden);
    matrix(name + "down" + suffix, module + "down_proj", config_.hidden, width);
  }

  void experts() {
    const ExpertsConfig& c = *config_.experts;
    matrix("ffn_gate_inp", "mlp.gate", c.experts, config_.hidden).exact = true;
    const auto all = [&](const char* name, const char* module, int64_t out, int64_t in) {
      GgufEntry& entry = matrix(name, "", out, in);
      entry.stacked = true;
      entry.modules.clear();
      for (int64_t e = 0; e < c.experts; ++e)
        entry.modules.push_back(cat(source_, "mlp.experts.", e, ".", module));
    };
    all("ffn_gate_exps", "gate_proj", c.width, config_.hidden);
    all("ffn_up_exps", "up_proj", c.width, config_.hidden);
    all("ffn_down_exps", "down_proj", config_.hidden, c.width);
    vector("ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight", {1, config_.hidden});
    mlp("ffn_", "_shexp", "mlp.shared_expert.", c.shared_width);
  }

  std::vector<GgufEntry>& entries_;
  const Config& config_;
  std::string source_, name_;
};

}  // namespace

std::vector<GgufEntry> gguf_entries(const Config& config, const qwen3_5::Prefixes& prefixes,
                                    bool with_mtp) {
  std::vector<GgufEntry> entries;
  Block text(entries, config, prefixes.text, "");
  text.matrix("token_embd", "embed_tokens", config.vocabulary, config.hidden);
  text.norm("output_norm", "norm", config.hidden);
  if (!config.tied_head)
    Block(entries, config, "", "")
        .matrix("output", prefixes.head, config.vocabulary, config.hidden);
  for (size_t i = 0; i < config.layers.size(); ++i)
    Block(entries, config, cat(prefixes.text, "layers.", i, "."), cat("blk.", i, "."))
        .layer(config.layers[i]);
  if (!with_mtp) return entries;
  const std::string block = cat("blk.", config.layers.size(), ".");
  Block(entries, config, prefixes.mtp + "layers.0.", block).layer(LayerKind::attention);
  Block next(entries, config, prefixes.mtp, block + "nextn.");
  next.matrix("eh_proj", "fc", config.hidden, 2 * config.hidden);
  next.norm("enorm", "pre_fc_norm_embedding", config.hidden);
  next.norm("hnorm", "pre_fc_norm_hidden", config.hidden);
  next.norm("shared_head_norm", "norm", config.hidden);
  return entries;
}

void add_architecture(const Config& config, bool with_mtp,
                      const std::vector<int64_t>& rope_sections, GgufMetadata& metadata) {
  const std::string name = config.experts ? "qwen35moe" : "qwen35";
  metadata.add("general.architecture", name);
  const auto add = [&](const char* key, auto value) { metadata.add(name + "." + key, value); };
  const auto count = [&](const char* key, int64_t value) { add(key, uint32_t(value)); };
  count("block_count", int64_t(config.layers.size()) + (with_mtp ? 1 : 0));
  if (with_mtp) count("nextn_predict_layers", 1);
  count("context_length", config.max_context);
  count("embedding_length", config.hidden);
  count("vocab_size", config.vocabulary);
  count("attention.head_count", config.attention.q_heads);
  count("attention.head_count_kv", config.attention.kv_heads);
  count("attention.key_length", config.attention.head_dim);
  count("attention.value_length", config.attention.head_dim);
  add("attention.layer_norm_rms_epsilon", config.eps);
  if (config.experts) {
    count("expert_count", config.experts->experts);
    count("expert_used_count", config.experts->top_k);
    count("expert_feed_forward_length", config.experts->width);
    count("expert_shared_feed_forward_length", config.experts->shared_width);
  } else {
    count("feed_forward_length", config.mlp_width);
  }
  const DeltaNetConfig& delta = config.delta_net;
  count("ssm.conv_kernel", delta.conv_width);
  count("ssm.state_size", delta.key_dim);
  count("ssm.group_count", delta.key_heads);
  count("ssm.time_step_rank", delta.value_heads);
  count("ssm.inner_size", delta.value_size());
  int64_t interval = 0;
  for (size_t i = 0; i < config.layers.size() && interval == 0; ++i)
    if (config.layers[i] == LayerKind::attention) interval = int64_t(i) + 1;
  count("full_attention_interval", interval);

  count("rope.dimension_count", config.attention.rotary_dims);
  add("rope.freq_base", float(config.rope.theta));
  // Text advances all axes alike, so for text any sections are right.
  std::vector<int32_t> sections = {11, 11, 10};
  if (rope_sections.size() == 3) sections.assign(rope_sections.begin(), rope_sections.end());
  sections.push_back(0);
  add("rope.dimension_sections", std::span<const int32_t>(sections));
  if (config.rope.factor > 1) {
    add("rope.scaling.type", "yarn");
    add("rope.scaling.factor", float(config.rope.factor));
    count("rope.scaling.original_context_length", int64_t(config.rope.original_context));
  }
}

}  // namespace slip
