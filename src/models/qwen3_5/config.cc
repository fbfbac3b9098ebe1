#include "models/qwen3_5/config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace slip::qwen3_5 {
namespace {

constexpr int64_t kMaxDeltaKeyDim = 512;  // what kernels are made for

// The state is always f32; every layer of a mixture has experts, and no MLP besides.
constexpr std::string_view kHarmlessKeys[] = {"mamba_ssm_dtype", "mlp_only_layers",
                                              "intermediate_size"};

std::vector<LayerKind> read_layers(ConfigReader& text) {
  const int64_t interval = text.int_or("full_attention_interval", 4, 1, 4096);
  std::vector<LayerKind> layers;
  for (const bool full : read_full_layers(text, "linear_attention", interval))
    layers.push_back(full ? LayerKind::attention : LayerKind::delta_net);
  return layers;
}

AttentionConfig read_attention(ConfigReader& text, double rotary_factor) {
  AttentionConfig attention{};
  attention.q_heads = text.require_int("num_attention_heads", 1, kMaxDim);
  attention.kv_heads = text.require_int("num_key_value_heads", 1, kMaxDim);
  attention.head_dim = text.int_or("head_dim", 256, 2, kMaxHeadDim);
  if (text.failed()) return attention;  // the factor may be anything
  attention.rotary_dims = int64_t(double(attention.head_dim) * rotary_factor);
  check_heads(text, attention.q_heads, attention.kv_heads);
  if (attention.rotary_dims % 2 != 0 || attention.rotary_dims < 2 ||
      attention.rotary_dims > attention.head_dim)
    text.fail("head_dim", cat("with partial_rotary_factor ", rotary_factor, " gives ",
                              attention.rotary_dims, " rotary dimensions"));
  return attention;
}

DeltaNetConfig read_delta_net(ConfigReader& text) {
  DeltaNetConfig delta{};
  delta.key_heads = text.int_or("linear_num_key_heads", 16, 1, kMaxDim);
  delta.value_heads = text.int_or("linear_num_value_heads", 32, 1, kMaxDim);
  delta.key_dim = text.int_or("linear_key_head_dim", 128, 1, kMaxDeltaKeyDim);
  delta.value_dim = text.int_or("linear_value_head_dim", 128, 1, 4096);
  delta.conv_width = text.int_or("linear_conv_kernel_dim", 4, 2, 64);
  if (delta.value_heads % delta.key_heads != 0)
    text.fail("linear_num_key_heads", cat("must divide linear_num_value_heads (", delta.value_heads,
                                          "), found ", delta.key_heads));
  return delta;
}

RopeConfig read_rope(ConfigReader& text, double& rotary_factor) {
  RopeConfig rope;
  rotary_factor = 0.25;
  ConfigReader* parameters = text.child_or_null("rope_parameters");
  if (!parameters) parameters = text.child_or_null("rope_scaling");
  if (!parameters) {
    rope.theta = text.double_or("rope_theta", 1e7);
    rotary_factor = text.double_or("partial_rotary_factor", 0.25);
    check_rope(text, rope.theta, rotary_factor);
    return rope;
  }
  rope.theta = parameters->double_or("rope_theta", text.double_or("rope_theta", 1e7));
  rotary_factor =
      parameters->double_or("partial_rotary_factor", text.double_or("partial_rotary_factor", 0.25));
  // "type" is how rope_scaling spelled it.
  const std::string type =
      parameters->string_or("rope_type", parameters->string_or("type", "default"));
  if (type == "yarn") {
    parameters->expect("beta_fast", 32);
    parameters->expect("beta_slow", 1);
    for (const char* key : {"attention_factor", "mscale", "mscale_all_dim"})
      parameters->expect(key, nullptr);
    rope.factor = parameters->require_double("factor");
    rope.original_context = double(parameters->require_int("original_max_position_embeddings"));
    if (!(rope.factor >= 1))
      parameters->fail("factor", cat("must be at least 1, found ", rope.factor));
  } else if (type != "default") {
    parameters->fail("rope_type", cat("expected \"default\" or \"yarn\", found \"", type, "\""));
  }
  // The three axes of M-RoPE are equal for text, whatever the sections are.
  parameters->raw("mrope_section");
  parameters->raw("mrope_interleaved");
  check_rope(*parameters, rope.theta, rotary_factor);
  return rope;
}

}  // namespace

bool handles_model_type(const std::string& model_type) {
  return model_type == "qwen3_5" || model_type == "qwen3_5_text" || model_type == "qwen3_5_moe" ||
         model_type == "qwen3_5_moe_text";
}

Result<Config> read_config(const JsonObject& json, const std::string& source) {
  ConfigReader root(json, source);
  ConfigReader* nested = root.child_or_null("text_config");
  ConfigReader& text = nested ? *nested : root;
  const std::string model_type = text.require_string("model_type");
  if (!text.failed() && !handles_model_type(model_type))
    text.fail("model_type", cat("expected a Qwen3.5 text model, found \"", model_type, "\""));

  Config config;
  const bool moe = model_type.find("moe") != std::string::npos;
  config.family = moe ? "qwen3_5_moe" : "qwen3_5";
  read_sizes(text, 32768, config);
  config.tied_head = read_tied_head(root, text, false);
  config.mtp_layers = text.int_or("mtp_num_hidden_layers", 0, 0, 1);
  config.layers = read_layers(text);
  double rotary_factor = 0;
  config.rope = read_rope(text, rotary_factor);
  config.attention = read_attention(text, rotary_factor);
  config.delta_net = read_delta_net(text);
  if (moe) {
    config.experts = read_experts(text, config.layers.size(), "num_experts_per_tok");
    config.experts->shared_width = text.require_int("shared_expert_intermediate_size", 1, kMaxDim);
    text.expect("norm_topk_prob", true);
  } else {
    config.mlp_width = text.require_int("intermediate_size", 1, kMaxDim);
  }
  text.expect("hidden_act", "silu");
  text.expect("attention_bias", false);
  text.expect("attn_output_gate", true);
  text.expect("mtp_use_dedicated_embeddings", false);
  const std::string gate = text.string_or("output_gate_type", "silu");
  if (gate != "silu" && gate != "swish")
    text.fail("output_gate_type", cat("expected \"silu\", found \"", gate, "\""));
  config.unknown_keys = unknown_keys(text, {std::begin(kHarmlessKeys), std::end(kHarmlessKeys)});
  return root.finish(config);
}

std::vector<float> rope_frequencies(const Config& config) {
  const int64_t dims = config.attention.rotary_dims;
  const RopeConfig& rope = config.rope;
  // YaRN: dimensions that turn more than 32 times in the original context keep their frequency,
  // those that turn less than once are stretched, with a ramp between.
  const auto correction = [&](double turns) {
    return double(dims) * std::log(rope.original_context / (2 * std::numbers::pi * turns)) /
           (2 * std::log(rope.theta));
  };
  double low = 0, high = 0;
  if (rope.factor > 1) {
    low = std::max(std::floor(correction(32)), 0.0);
    high = std::min(std::ceil(correction(1)), double(dims - 1));
    if (high <= low) high = low + 0.001;
  }
  std::vector<float> frequencies;
  for (int64_t j = 0; j < dims / 2; ++j) {
    const double frequency = std::pow(rope.theta, -2.0 * double(j) / double(dims));
    double ramp = 0;
    if (rope.factor > 1) ramp = std::clamp((double(j) - low) / (high - low), 0.0, 1.0);
    frequencies.push_back(float(frequency * (1 - ramp) + frequency / rope.factor * ramp));
  }
  return frequencies;
}

float rope_scale(const Config& config) {
  return config.rope.factor > 1 ? float(0.1 * std::log(config.rope.factor) + 1) : 1.0f;
}

}  // namespace slip::qwen3_5
