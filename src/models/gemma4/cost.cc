#include "models/gemma4/cost.h"

namespace slip::gemma4 {
void add_layer(const Config& config, size_t index, const Layer& layer, Tally& tally) {
  for (const View* scale :
       {&layer.input_scale, &layer.post_attention_scale, &layer.mlp_scale, &layer.post_mlp_scale,
        &layer.attention.q_scale, &layer.attention.k_scale})
    tally.add(*scale);
  for (const Weight* weight :
       {&layer.attention.q, &layer.attention.k, &layer.attention.v, &layer.attention.o})
    tally.add(*weight);
  const LayerConfig& c = config.layers[index];
  const KindConfig& kind = config.kind_of(c);
  tally.attention({.q_heads = config.q_heads,
                   .kv_heads = kind.kv_heads,
                   .head_dim = kind.head_dim,
                   .window = kind.window});
  tally.add(layer.mlp);
  if (layer.moe) {
    for (const View* scale :
         {&layer.moe->router_scale, &layer.moe->expert_scales, &layer.moe->dense_scale,
          &layer.moe->input_scale, &layer.moe->output_scale})
      tally.add(*scale);
    tally.add(layer.moe->router);
    tally.experts(layer.moe->experts, config.experts->top_k);
  }
  if (layer.per_layer) {
    tally.add(layer.per_layer->gate);
    tally.add(layer.per_layer->projection);
    tally.add(layer.per_layer->scale);
  }
}

StepCost step_cost(const Config& config, const Weights& weights, const CostOf& of) {
  Tally tally(of.rows, of.context, of.kv);
  tally.look_up(weights.embedding);
  if (weights.per_layer) {
    tally.look_up(weights.per_layer->table.weight);
    tally.add(weights.per_layer->projection);
    tally.add(weights.per_layer->scale);
  }
  for (size_t i = 0; i < weights.layers.size(); ++i) add_layer(config, i, weights.layers[i], tally);
  tally.add(weights.final_scale);
  tally.add(weights.head);
  return tally.cost();
}

}  // namespace slip::gemma4
