#include "models/qwen3_5/qwen3_5.h"

#include <algorithm>

#include "models/qwen3_5/forward.h"

namespace slip::qwen3_5 {

StepLimits step_limits(const Config& config, int64_t max_rows, int64_t context) {
  StepLimits limits;
  limits.rows = max_rows;
  limits.q_heads = config.attention.q_heads;
  limits.head_dim = config.attention.head_dim;
  limits.context = context;
  limits.widest_input =
      std::max({2 * config.hidden, config.attention.q_heads * config.attention.head_dim,
                config.delta_net.value_size(), config.mlp_width});
  cover(config, limits);
  return limits;
}

ModelInfo info_of(const Config& config, bool with_mtp) {
  return model_info(config, config.layers.size(),
                    with_mtp ? std::optional(DrafterKeys::own) : std::nullopt);
}

std::vector<CacheSpec> cache_specs(const Config& config, bool with_mtp) {
  const DeltaNetConfig& delta = config.delta_net;
  const PagedKvSpec kv{config.attention.kv_heads, config.attention.head_dim};
  const RecurrentSpec state{.key_heads = delta.key_heads,
                            .value_heads = delta.value_heads,
                            .key_dim = delta.key_dim,
                            .value_dim = delta.value_dim,
                            .conv_tail = delta.conv_width - 1,
                            .conv_channels = delta.conv_channels()};
  std::vector<CacheSpec> specs;
  for (const LayerKind kind : config.layers) {
    switch (kind) {
      case LayerKind::attention: specs.emplace_back(kv); break;
      case LayerKind::delta_net: specs.emplace_back(state); break;
    }
  }
  if (with_mtp) specs.emplace_back(kv);
  return specs;
}

Qwen35::Qwen35(const LoadOptions& options, Ops& ops)
    : TextModel(info_of(options.weights.config, options.weights.wanted.with_mtp),
                qwen3_5::cache_specs(options.weights.config, options.weights.wanted.with_mtp), ops),
      config_(options.weights.config),
      activations_(options.weights.config, options.max_rows, &ops.memory()) {
  ops_.reserve(step_limits(config_, options.max_rows, options.context));
  if (options.weights.wanted.with_mtp) mtp_.emplace(pass_owner(), config_, weights_, activations_);
}

Result<std::unique_ptr<Qwen35>> Qwen35::load(const LoadOptions& options, WeightSource& source,
                                             Ops& ops, ThreadPool& pool,
                                             const LoadProgress& progress) {
  std::unique_ptr<Qwen35> model(new Qwen35(options, ops));
  WeightTable table;
  declare_weights(options.weights, table, model->weights_);
  SLIP_TRY_STATUS(model->load_weights(table, source, pool, progress));
  mark_drafting(options.weights.prefixes, model->placed_);
  finish_weights(options.weights.config, ops.memory(), model->weights_);
  return model;
}

void Qwen35::forward(const Step& step, Cache& cache) {
  const Pass pass{config_, ops_, cache, activations_, step.spans, step.ids.shape[0]};
  run_pass(pass_owner(), step, [&] { qwen3_5::forward(weights_, step, pass); });
}

}  // namespace slip::qwen3_5
