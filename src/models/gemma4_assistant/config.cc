#include "models/gemma4_assistant/config.h"

namespace slip::gemma4_assistant {
namespace {

bool is_drafter_type(std::string_view model_type) {
  return model_type == "gemma4_assistant" || model_type == "gemma4_unified_assistant";
}

}  // namespace

bool is_drafter(const JsonObject& json) {
  return is_drafter_type(text_or_empty(json.if_contains("model_type")));
}

Result<DrafterConfig> read_drafter_config(const JsonObject& json, const std::string& source) {
  ConfigReader root(json, source);
  const std::string type = root.require_string("model_type");
  if (!root.failed() && !is_drafter_type(type))
    root.fail("model_type", cat("expected a Gemma 4 drafter (gemma4_assistant), found \"", type,
                                "\"; drafters are in \"-assistant\" repositories"));
  DrafterConfig drafter;
  ConfigReader& text = root.child("text_config");
  int64_t shared = 0;
  drafter.text = gemma4::read_text_config(text, shared);
  const auto layers = int64_t(drafter.text.layers.size());
  if (!text.failed() && shared != 0 && shared != layers)
    text.fail(
        "num_kv_shared_layers",
        cat("all ", layers, " layers of a drafter read another model's keys, found ", shared));
  if (drafter.text.ple_width != 0 || drafter.text.experts)
    text.fail("enable_moe_block", "drafters have neither experts nor per-layer embeddings");
  drafter.backbone = root.require_int("backbone_hidden_size", 1);
  drafter.clusters = root.int_or("num_centroids", 0, 0);
  drafter.chosen_clusters = root.int_or("centroid_intermediate_top_k", 0, 0);
  return root.finish(drafter);
}

Status attach(DrafterConfig& drafter, const gemma4::Config& target) {
  const auto differs = [](const char* what, int64_t its, int64_t models) {
    return error("the drafter was made for a model with ", what, " ", its, ", this one has ",
                 models);
  };
  if (drafter.backbone != target.hidden)
    return differs("hidden size", drafter.backbone, target.hidden);
  if (drafter.text.vocabulary != target.vocabulary)
    return differs("vocabulary", drafter.text.vocabulary, target.vocabulary);
  for (gemma4::LayerConfig& layer : drafter.text.layers) {
    const gemma4::KindConfig& its = drafter.text.kind_of(layer);
    const gemma4::KindConfig& models = target.kind_of(layer);
    if (its.kv_heads != models.kv_heads)
      return differs("key heads in number", its.kv_heads, models.kv_heads);
    if (its.head_dim != models.head_dim)
      return differs("heads of size", its.head_dim, models.head_dim);
    if (its.window != models.window) return differs("window", its.window, models.window);
    const std::optional<int64_t> owner = last_owner(target, layer.kind);
    if (!owner) return error("the model has no layer whose keys the drafter could read");
    layer.keys_of = *owner;
  }
  return {};
}

}  // namespace slip::gemma4_assistant
