#include "models/gemma4/cost.h"

namespace slip::gemma4 {
namespace {

void add_moe(const Moe& moe, int64_t top_k, Tally& tally) {
  for (const View* scale : {&moe.router_scale, &moe.expert_scales, &moe.dense_scale,
                            &moe.input_scale, &moe.output_scale})
    tally.add(*scale);
  tally.add(moe.router);
  tally.experts(moe.experts, top_k);
}

}  // namespace

void add_layers(const Config& config, std::span<const Layer> layers, Tally& tally) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = layers[i];
    for (const View* scale :
         {&layer.input_scale, &layer.post_attention_scale, &layer.mlp_scale, &layer.post_mlp_scale})
      tally.add(*scale);
    const KindConfig& kind = config.kind_of(config.layers[i]);
    tally.add(layer.attention, {config.q_heads, kind.kv_heads, kind.head_dim, kind.window});
    tally.add(layer.mlp);
    if (layer.moe) add_moe(*layer.moe, config.experts->top_k, tally);
    if (!layer.per_layer) continue;
    tally.add(layer.per_layer->gate);
    tally.add(layer.per_layer->projection);
    tally.add(layer.per_layer->scale);
  }
}

void add_step(const Config& config, const Weights& weights, Tally& tally) {
  tally.look_up(weights.embedding);
  if (weights.per_layer) {
    tally.look_up(weights.per_layer->table.weight);
    tally.add(weights.per_layer->projection);
    tally.add(weights.per_layer->scale);
  }
  add_layers(config, weights.layers, tally);
  tally.add(weights.final_scale);
  tally.add(weights.head);
}

}  // namespace slip::gemma4
