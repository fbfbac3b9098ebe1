#include "models/gemma4/gemma4.h"

#include <algorithm>

#include "models/gemma4/cost.h"
#include "models/gemma4/forward.h"

namespace slip::gemma4 {

StepLimits step_limits(const Config& config, int64_t max_rows, int64_t context, StepLimits beside) {
  StepLimits limits = beside;
  limits.rows = std::max(limits.rows, max_rows);
  limits.context = context;
  cover_layers(config, limits);
  return limits;
}

ModelInfo info_of(const Config& config) {
  return model_info(config, config.layers.size(), std::nullopt);
}

std::vector<CacheSpec> cache_specs(const Config& config) {
  std::vector<CacheSpec> specs;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const LayerConfig& layer = config.layers[i];
    const KindConfig& kind = config.kind_of(layer);
    if (layer.keys_of != int64_t(i)) {
      specs.emplace_back(SharedKvSpec{layer.keys_of});
    } else if (kind.window > 0) {
      specs.emplace_back(WindowKvSpec{kind.kv_heads, kind.head_dim, kind.window});
    } else {
      specs.emplace_back(PagedKvSpec{kind.kv_heads, kind.head_dim});
    }
  }
  return specs;
}

Gemma4::Gemma4(const LoadOptions& load, Ops& ops)
    : TextModel(info_of(load.config), gemma4::cache_specs(load.config), ops),
      config_(load.config),
      files_(load.files),
      activations_(load.config, load.options.max_rows, &ops.memory()) {
  ops_.reserve(step_limits(config_, activations_.max_rows, load.options.context, load.beside));
}

Result<std::unique_ptr<Gemma4>> Gemma4::load(const LoadOptions& load, Ops& ops, ThreadPool& pool,
                                             const LoadProgress& progress) {
  std::unique_ptr<Gemma4> model(new Gemma4(load, ops));
  WeightTable table;
  declare_weights({load.config, load.prefixes, load.options.weights}, table, model->weights_);
  SLIP_TRY_STATUS(model->load_weights(table, load.source, pool, progress));
  finish_weights(load.config, ops.memory(), model->weights_);
  return model;
}

void Gemma4::forward(const Step& step, Cache& cache) {
  const Pass pass{config_, ops_, cache, activations_, step.spans, 0, step.ids.shape[0]};
  if (weights_.per_layer) fetch_per_layer(*weights_.per_layer, step.host_ids, pass);
  run_pass(pass_owner(), step, [&] { gemma4::forward(weights_, step, pass); });
}

StepCost Gemma4::step_cost(int64_t rows, int64_t context, const KvRecipe& kv) const {
  Tally tally(rows, context, kv);
  add_step(config_, weights_, tally);
  return tally.cost();
}

}  // namespace slip::gemma4
