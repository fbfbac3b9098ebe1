#include "models/qwen3_5/shapes.h"

namespace slip::qwen3_5 {
namespace {

struct Published {
  const char* name;
  int64_t hidden, layers;
  int64_t width;  // of the MLP, or of an expert
  int64_t q_heads, kv_heads = 2, head_dim = 256, rotary_dims = 64;
  int64_t key_heads = 16, value_heads, delta_dim = 128;  // of the delta net
  bool tied_head = false;
  int64_t experts = 0, top_k = 0;
  int64_t vocabulary = 248320;
};

constexpr Published kPublished[] = {
    // No published model: small enough to read a whole context of 262,144 tokens on a desk.
    {.name = "qwen3.5-nano",
     .hidden = 256,
     .layers = 4,
     .width = 512,
     .q_heads = 4,
     .kv_heads = 1,
     .head_dim = 64,
     .rotary_dims = 16,
     .key_heads = 2,
     .value_heads = 4,
     .delta_dim = 64,
     .vocabulary = 4096},
    {.name = "qwen3.5-0.8b",
     .hidden = 1024,
     .layers = 24,
     .width = 3584,
     .q_heads = 8,
     .value_heads = 16,
     .tied_head = true},
    {.name = "qwen3.5-2b",
     .hidden = 2048,
     .layers = 24,
     .width = 6144,
     .q_heads = 8,
     .value_heads = 16,
     .tied_head = true},
    {.name = "qwen3.5-4b",
     .hidden = 2560,
     .layers = 32,
     .width = 9216,
     .q_heads = 16,
     .kv_heads = 4,
     .value_heads = 32,
     .tied_head = true},
    {.name = "qwen3.5-9b",
     .hidden = 4096,
     .layers = 32,
     .width = 12288,
     .q_heads = 16,
     .kv_heads = 4,
     .value_heads = 32},
    {.name = "qwen3.5-27b",
     .hidden = 5120,
     .layers = 64,
     .width = 17408,
     .q_heads = 24,
     .kv_heads = 4,
     .value_heads = 48},
    {.name = "qwen3.5-35b-a3b",
     .hidden = 2048,
     .layers = 40,
     .width = 512,
     .q_heads = 16,
     .value_heads = 32,
     .experts = 256,
     .top_k = 8},
    {.name = "qwen3.5-122b-a10b",
     .hidden = 3072,
     .layers = 48,
     .width = 1024,
     .q_heads = 32,
     .value_heads = 64,
     .experts = 256,
     .top_k = 8},
    {.name = "qwen3.5-397b-a17b",
     .hidden = 4096,
     .layers = 60,
     .width = 1024,
     .q_heads = 32,
     .value_heads = 64,
     .experts = 512,
     .top_k = 10},
};

Config config_of(const Published& shape) {
  Config config;
  config.family = shape.experts > 0 ? "qwen3_5_moe" : "qwen3_5";
  config.vocabulary = shape.vocabulary;
  config.hidden = shape.hidden;
  config.max_context = 262144;
  config.eps = 1e-6f;
  config.tied_head = shape.tied_head;
  config.mtp_layers = 1;
  config.rope.theta = 1e7;
  for (int64_t i = 0; i < shape.layers; ++i)
    config.layers.push_back(i % 4 == 3 ? LayerKind::attention : LayerKind::delta_net);
  config.attention = {.q_heads = shape.q_heads,
                      .kv_heads = shape.kv_heads,
                      .head_dim = shape.head_dim,
                      .rotary_dims = shape.rotary_dims};
  config.delta_net = {.key_heads = shape.key_heads,
                      .value_heads = shape.value_heads,
                      .key_dim = shape.delta_dim,
                      .value_dim = shape.delta_dim,
                      .conv_width = 4};
  if (shape.experts > 0) {
    config.experts = ExpertsConfig{.experts = shape.experts,
                                   .top_k = shape.top_k,
                                   .width = shape.width,
                                   .shared_width = shape.width};
  } else {
    config.mlp_width = shape.width;
  }
  return config;
}

}  // namespace

std::optional<Config> shape_by_name(const std::string& name) {
  for (const Published& shape : kPublished)
    if (name == shape.name) return config_of(shape);
  return std::nullopt;
}

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  for (const Published& shape : kPublished) names.emplace_back(shape.name);
  return names;
}

}  // namespace slip::qwen3_5
