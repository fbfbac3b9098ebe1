#include "models/qwen3_5/shapes.h"

namespace slip::qwen3_5 {
namespace {

struct Published {
  const char* name;
  struct {
    int64_t hidden, layers, mlp;  // `mlp` is also the width of an expert
  } size;
  struct {
    int64_t q, kv = 2, dim = 256, rotary_dims = 64;
  } heads;
  struct {
    int64_t value_heads, key_heads = 16, dim = 128;
  } delta_net;
  struct {
    int64_t count = 0, top_k = 0;
  } experts{};
  bool tied_head = false;
  int64_t vocabulary = 248320;
};

constexpr Published kPublished[] = {
    // No published model: small enough to read a whole context of 262,144 tokens on a desk.
    {.name = "qwen3.5-nano",
     .size = {.hidden = 256, .layers = 4, .mlp = 512},
     .heads = {.q = 4, .kv = 1, .dim = 64, .rotary_dims = 16},
     .delta_net = {.value_heads = 4, .key_heads = 2, .dim = 64},
     .vocabulary = 4096},
    {.name = "qwen3.5-0.8b",
     .size = {.hidden = 1024, .layers = 24, .mlp = 3584},
     .heads = {.q = 8},
     .delta_net = {.value_heads = 16},
     .tied_head = true},
    {.name = "qwen3.5-2b",
     .size = {.hidden = 2048, .layers = 24, .mlp = 6144},
     .heads = {.q = 8},
     .delta_net = {.value_heads = 16},
     .tied_head = true},
    {.name = "qwen3.5-4b",
     .size = {.hidden = 2560, .layers = 32, .mlp = 9216},
     .heads = {.q = 16, .kv = 4},
     .delta_net = {.value_heads = 32},
     .tied_head = true},
    {.name = "qwen3.5-9b",
     .size = {.hidden = 4096, .layers = 32, .mlp = 12288},
     .heads = {.q = 16, .kv = 4},
     .delta_net = {.value_heads = 32}},
    {.name = "qwen3.5-27b",
     .size = {.hidden = 5120, .layers = 64, .mlp = 17408},
     .heads = {.q = 24, .kv = 4},
     .delta_net = {.value_heads = 48}},
    {.name = "qwen3.5-35b-a3b",
     .size = {.hidden = 2048, .layers = 40, .mlp = 512},
     .heads = {.q = 16},
     .delta_net = {.value_heads = 32},
     .experts = {.count = 256, .top_k = 8}},
    {.name = "qwen3.5-122b-a10b",
     .size = {.hidden = 3072, .layers = 48, .mlp = 1024},
     .heads = {.q = 32},
     .delta_net = {.value_heads = 64},
     .experts = {.count = 256, .top_k = 8}},
    {.name = "qwen3.5-397b-a17b",
     .size = {.hidden = 4096, .layers = 60, .mlp = 1024},
     .heads = {.q = 32},
     .delta_net = {.value_heads = 64},
     .experts = {.count = 512, .top_k = 10}},
};

Config config_of(const Published& shape) {
  Config config;
  config.family = shape.experts.count > 0 ? "qwen3_5_moe" : "qwen3_5";
  config.vocabulary = shape.vocabulary;
  config.hidden = shape.size.hidden;
  config.max_context = 262144;
  config.eps = 1e-6f;
  config.tied_head = shape.tied_head;
  config.mtp_layers = 1;
  config.rope.theta = 1e7;
  for (int64_t i = 0; i < shape.size.layers; ++i)
    config.layers.push_back(i % 4 == 3 ? LayerKind::attention : LayerKind::delta_net);
  config.attention = {.q_heads = shape.heads.q,
                      .kv_heads = shape.heads.kv,
                      .head_dim = shape.heads.dim,
                      .rotary_dims = shape.heads.rotary_dims};
  config.delta_net = {.key_heads = shape.delta_net.key_heads,
                      .value_heads = shape.delta_net.value_heads,
                      .key_dim = shape.delta_net.dim,
                      .value_dim = shape.delta_net.dim,
                      .conv_width = 4};
  if (shape.experts.count > 0) {
    config.experts = ExpertsConfig{.experts = shape.experts.count,
                                   .top_k = shape.experts.top_k,
                                   .width = shape.size.mlp,
                                   .shared_width = shape.size.mlp};
  } else {
    config.mlp_width = shape.size.mlp;
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
