#include "models/gemma4/config.h"

#include <algorithm>
#include <cmath>

#include "base/ascii.h"
#include "quant/number_formats.h"

namespace slip::gemma4 {
namespace {

// What those who open the file ask for; experts that are off; what per_layer_config says instead.
constexpr std::string_view kHarmlessKeys[] = {"model_type",
                                              "tie_word_embeddings",
                                              "num_experts",
                                              "top_k_experts",
                                              "moe_intermediate_size",
                                              "global_head_dim",
                                              "num_global_key_value_heads"};

std::vector<LayerKind> read_layers(ConfigReader& text) {
  std::vector<LayerKind> layers;
  for (const bool full : read_full_layers(text, "sliding_attention", 6))
    layers.push_back(full ? LayerKind::full : LayerKind::sliding);
  if (!layers.empty()) layers.back() = LayerKind::full;
  return layers;
}

void read_rope(ConfigReader& text, LayerKind which, KindConfig& kind) {
  const bool full = which == LayerKind::full;
  kind.theta = full ? 1e6 : 1e4;
  double share = full ? 0.25 : 1;
  ConfigReader* all = text.child_or_null("rope_parameters");
  ConfigReader* rope =
      all ? all->child_or_null(full ? "full_attention" : "sliding_attention") : nullptr;
  if (rope) {
    kind.theta = rope->double_or("rope_theta", kind.theta);
    const std::string type = rope->string_or("rope_type", full ? "proportional" : "default");
    if (type == "proportional") {
      share = rope->double_or("partial_rotary_factor", share);
      kind.frequency_divisor = rope->double_or("factor", 1);
    } else if (type == "default") {
      share = 1;
    } else {
      rope->fail("rope_type",
                 cat("expected \"default\" or \"proportional\", found \"", type, "\""));
    }
    check_rope(*rope, kind.theta, share);
    if (!(kind.frequency_divisor > 0))
      rope->fail("factor", cat("must be positive, found ", kind.frequency_divisor));
  }
  kind.live_pairs = int64_t(share * double(kind.head_dim) / 2);
}

// The newer form: sizes by layer, of which all layers of a kind must have the same.
void read_layer_sizes(ConfigReader& by_layer, const std::vector<LayerKind>& layers,
                      std::array<KindConfig, 2>& kinds) {
  std::vector<KindConfig> sizes;
  sizes.reserve(layers.size());
  for (const LayerKind kind : layers) sizes.push_back(kinds[size_t(kind)]);
  for (const std::string& key : by_layer.keys()) {
    const size_t index = parse_decimal(key).value_or(layers.size());
    if (index >= layers.size()) {
      by_layer.fail(key, cat("expected the number of one of ", layers.size(), " layers"));
      return;
    }
    ConfigReader& layer = by_layer.child(key);
    sizes[index].head_dim = layer.int_or("head_dim", sizes[index].head_dim, 2, kMaxHeadDim);
    sizes[index].kv_heads = layer.int_or("num_key_value_heads", sizes[index].kv_heads, 1, kMaxDim);
  }
  for (const LayerKind kind : kKinds) {
    const auto first = std::ranges::find(layers, kind);
    if (first == layers.end()) continue;
    KindConfig& common = kinds[size_t(kind)];
    common = sizes[size_t(first - layers.begin())];
    for (size_t i = 0; i < layers.size(); ++i)
      if (layers[i] == kind &&
          (sizes[i].head_dim != common.head_dim || sizes[i].kv_heads != common.kv_heads))
        by_layer.fail(std::to_string(i),
                      "layers of one kind must have heads of one size and number");
  }
}

void read_kinds(ConfigReader& text, const std::vector<LayerKind>& layers, Config& config) {
  KindConfig& sliding = config.kinds[size_t(LayerKind::sliding)];
  KindConfig& full = config.kinds[size_t(LayerKind::full)];
  sliding.head_dim = text.int_or("head_dim", 256, 2, kMaxHeadDim);
  sliding.kv_heads = text.require_int("num_key_value_heads", 1, kMaxDim);
  full = sliding;
  full.values_are_keys = text.bool_or("attention_k_eq_v", false);
  if (ConfigReader* by_layer = text.child_or_null("per_layer_config")) {
    read_layer_sizes(*by_layer, layers, config.kinds);
  } else {
    full.head_dim = text.int_or("global_head_dim", 512, 2, kMaxHeadDim);
    const int64_t kv_heads = text.int_or("num_global_key_value_heads", full.kv_heads, 1, kMaxDim);
    if (full.values_are_keys) full.kv_heads = kv_heads;
  }
  sliding.window = text.int_or("sliding_window", 512, 1);
  for (const LayerKind which : kKinds) {
    KindConfig& kind = config.kinds[size_t(which)];
    read_rope(text, which, kind);
    check_heads(text, config.q_heads, kind.kv_heads);
    if (kind.head_dim % 2 != 0) text.fail("head_dim", cat("must be even, found ", kind.head_dim));
  }
}

}  // namespace

bool handles_model_type(const std::string& model_type) {
  return model_type == "gemma4" || model_type == "gemma4_unified" || model_type == "gemma4_text" ||
         model_type == "gemma4_unified_text";
}

std::optional<int64_t> last_owner(const Config& config, LayerKind kind) {
  for (int64_t layer = config.owners - 1; layer >= 0; --layer)
    if (config.layers[size_t(layer)].kind == kind) return layer;
  return std::nullopt;
}

bool share_keys(Config& config, int64_t shared) {
  config.owners = int64_t(config.layers.size()) - shared;
  for (auto i = size_t(config.owners); i < config.layers.size(); ++i) {
    const std::optional<int64_t> owner = last_owner(config, config.layers[i].kind);
    if (!owner) return false;
    config.layers[i].keys_of = *owner;
  }
  return true;
}

Config read_text_config(ConfigReader& text, int64_t& shared) {
  Config config;
  read_sizes(text, 131072, config);
  config.q_heads = text.require_int("num_attention_heads", 1, kMaxDim);
  config.soft_cap = float(text.double_or("final_logit_softcapping", 0));
  const std::vector<LayerKind> layers = read_layers(text);
  read_kinds(text, layers, config);
  const auto count = int64_t(layers.size());
  shared = text.int_or("num_kv_shared_layers", 0, 0, count);
  const int64_t width = text.require_int("intermediate_size", 1, kMaxDim);
  const bool double_wide = text.bool_or("use_double_wide_mlp", false);
  for (int64_t i = 0; i < count; ++i) {
    const bool doubled = double_wide && shared < count && i >= count - shared;
    config.layers.push_back({layers[size_t(i)], doubled ? 2 * width : width, i});
  }
  config.ple_width = text.int_or("hidden_size_per_layer_input", 0, 0, kMaxDim);
  config.ple_vocabulary = text.int_or("vocab_size_per_layer_input", config.vocabulary, 0, kMaxDim);
  if (config.ple_width > 0 && config.ple_vocabulary < config.vocabulary)
    text.fail("vocab_size_per_layer_input", cat("must be at least vocab_size (", config.vocabulary,
                                                "), found ", config.ple_vocabulary));
  if (text.bool_or("enable_moe_block", false))
    config.experts = read_experts(text, layers.size(), "top_k_experts");
  config.family = config.experts ? "gemma4_moe" : "gemma4";
  text.expect("hidden_activation", "gelu_pytorch_tanh");
  text.expect("attention_bias", false);
  // "vision" lets parts of one image see each other, which text does not have.
  const std::string both_ways = text.string_or("use_bidirectional_attention", "vision");
  if (both_ways != "vision")
    text.fail("use_bidirectional_attention",
              cat("expected null or \"vision\", found \"", both_ways, "\""));
  config.unknown_keys = unknown_keys(text, {std::begin(kHarmlessKeys), std::end(kHarmlessKeys)});
  return config;
}

Result<Config> read_config(const JsonObject& json, const std::string& source) {
  ConfigReader root(json, source);
  ConfigReader* nested = root.child_or_null("text_config");
  ConfigReader& text = nested ? *nested : root;
  int64_t shared = 0;
  Config config = read_text_config(text, shared);
  config.tied_head = read_tied_head(root, text, true);
  if (!text.failed() && !share_keys(config, shared))
    text.fail("num_kv_shared_layers",
              cat(shared, " of ", config.layers.size(),
                  " layers leave a kind of layer without one that has keys of its own"));
  return root.finish(config);
}

int64_t Config::widest_mlp() const {
  return std::ranges::max(layers, {}, &LayerConfig::mlp_width).mlp_width;
}

float Config::embedding_factor() const {
  return bf16_to_float(float_to_bf16(std::sqrt(float(hidden))));
}

std::vector<float> rope_frequencies(const KindConfig& kind) {
  std::vector<float> frequencies(size_t(kind.head_dim / 2), 0.0f);
  for (int64_t i = 0; i < kind.live_pairs; ++i)
    frequencies[size_t(i)] = float(std::pow(kind.theta, -2.0 * double(i) / double(kind.head_dim)) /
                                   kind.frequency_divisor);
  return frequencies;
}

}  // namespace slip::gemma4
