#include "models/gemma4/shapes.h"

namespace slip::gemma4 {
namespace {

struct Published {
  const char* name;
  struct {
    int64_t hidden, layers, mlp;
  } size;
  struct {
    int64_t q, sliding_kv, full_kv;
  } heads;
  int64_t window = 1024, context = 262144;
  int64_t period = 6;  // of layers, the last of which is a full one
  int64_t shared = 0;  // layers without keys of their own
  bool double_wide = false, per_layer_embeddings = false, values_are_keys = false;
  int64_t experts = 0;
};

constexpr Published kPublished[] = {
    {.name = "gemma-4-e2b",
     .size = {.hidden = 1536, .layers = 35, .mlp = 6144},
     .heads = {.q = 8, .sliding_kv = 1, .full_kv = 1},
     .window = 512,
     .context = 131072,
     .period = 5,
     .shared = 20,
     .double_wide = true,
     .per_layer_embeddings = true},
    {.name = "gemma-4-e4b",
     .size = {.hidden = 2560, .layers = 42, .mlp = 10240},
     .heads = {.q = 8, .sliding_kv = 2, .full_kv = 2},
     .window = 512,
     .context = 131072,
     .shared = 18,
     .per_layer_embeddings = true},
    {.name = "gemma-4-12b",
     .size = {.hidden = 3840, .layers = 48, .mlp = 15360},
     .heads = {.q = 16, .sliding_kv = 8, .full_kv = 1},
     .values_are_keys = true},
    {.name = "gemma-4-26b-a4b",
     .size = {.hidden = 2816, .layers = 30, .mlp = 2112},
     .heads = {.q = 16, .sliding_kv = 8, .full_kv = 2},
     .values_are_keys = true,
     .experts = 128},
    {.name = "gemma-4-31b",
     .size = {.hidden = 5376, .layers = 60, .mlp = 21504},
     .heads = {.q = 32, .sliding_kv = 16, .full_kv = 4},
     .values_are_keys = true},
};

Config config_of(const Published& shape) {
  Config config;
  config.family = shape.experts > 0 ? "gemma4_moe" : "gemma4";
  config.vocabulary = 262144;
  config.hidden = shape.size.hidden;
  config.max_context = shape.context;
  config.eps = 1e-6f;
  config.tied_head = true;
  config.q_heads = shape.heads.q;
  config.soft_cap = 30;
  config.kinds[size_t(LayerKind::sliding)] = {.kv_heads = shape.heads.sliding_kv,
                                              .head_dim = 256,
                                              .window = shape.window,
                                              .theta = 1e4,
                                              .live_pairs = 128};
  config.kinds[size_t(LayerKind::full)] = {.kv_heads = shape.heads.full_kv,
                                           .head_dim = 512,
                                           .values_are_keys = shape.values_are_keys,
                                           .theta = 1e6,
                                           .live_pairs = 64};
  if (shape.per_layer_embeddings) {
    config.ple_width = 256;
    config.ple_vocabulary = config.vocabulary;
  }
  if (shape.experts > 0)
    config.experts = ExpertsConfig{.experts = shape.experts, .top_k = 8, .width = 704};
  for (int64_t i = 0; i < shape.size.layers; ++i) {
    const bool doubled = shape.double_wide && i >= shape.size.layers - shape.shared;
    config.layers.push_back({(i + 1) % shape.period == 0 ? LayerKind::full : LayerKind::sliding,
                             doubled ? 2 * shape.size.mlp : shape.size.mlp, i});
  }
  check(share_keys(config, shape.shared), shape.name);
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

}  // namespace slip::gemma4
