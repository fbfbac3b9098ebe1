#include "models/gemma4/shapes.h"

#include "models/gemma4/drafter_shapes.h"

namespace slip::gemma4 {
namespace {

struct Published {
  const char* name;
  int64_t hidden, layers, period, q_heads;
  int64_t sliding_kv_heads, full_kv_heads;
  int64_t width, window, context;
  int64_t shared;  // layers without keys of their own
  bool double_wide, per_layer_embeddings, values_are_keys;
  int64_t experts;
};

constexpr Published kPublished[] = {
    {"gemma-4-e2b", 1536, 35, 5, 8, 1, 1, 6144, 512, 131072, 20, true, true, false, 0},
    {"gemma-4-e4b", 2560, 42, 6, 8, 2, 2, 10240, 512, 131072, 18, false, true, false, 0},
    {"gemma-4-12b", 3840, 48, 6, 16, 8, 1, 15360, 1024, 262144, 0, false, false, true, 0},
    {"gemma-4-26b-a4b", 2816, 30, 6, 16, 8, 2, 2112, 1024, 262144, 0, false, false, true, 128},
    {"gemma-4-31b", 5376, 60, 6, 32, 16, 4, 21504, 1024, 262144, 0, false, false, true, 0},
};

Config target_config(const Published& shape) {
  Config config;
  config.family = shape.experts > 0 ? "gemma4_moe" : "gemma4";
  config.vocabulary = 262144;
  config.hidden = shape.hidden;
  config.max_context = shape.context;
  config.eps = 1e-6f;
  config.tied_head = true;
  config.q_heads = shape.q_heads;
  config.soft_cap = 30;
  config.kinds[size_t(LayerKind::sliding)] = {.kv_heads = shape.sliding_kv_heads,
                                              .head_dim = 256,
                                              .window = shape.window,
                                              .theta = 1e4,
                                              .live_pairs = 128};
  config.kinds[size_t(LayerKind::full)] = {.kv_heads = shape.full_kv_heads,
                                           .head_dim = 512,
                                           .values_are_keys = shape.values_are_keys,
                                           .theta = 1e6,
                                           .live_pairs = 64};
  if (shape.per_layer_embeddings) {
    config.ple_width = 256;
    config.ple_vocabulary = config.vocabulary;
  }
  if (shape.experts > 0) config.experts = ExpertsConfig{shape.experts, 8, 704};
  for (int64_t i = 0; i < shape.layers; ++i) {
    const bool doubled = shape.double_wide && i >= shape.layers - shape.shared;
    config.layers.push_back({(i + 1) % shape.period == 0 ? LayerKind::full : LayerKind::sliding,
                             doubled ? 2 * shape.width : shape.width, i});
  }
  check(share_keys(config, shape.shared), shape.name);
  return config;
}

}  // namespace

std::optional<Shapes> shape_by_name(const std::string& name) {
  for (const Published& shape : kPublished) {
    if (name != shape.name) continue;
    const Config target = target_config(shape);
    return Shapes{target, drafter_shape(name, target)};
  }
  return std::nullopt;
}

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  for (const Published& shape : kPublished) names.emplace_back(shape.name);
  return names;
}

}  // namespace slip::gemma4
