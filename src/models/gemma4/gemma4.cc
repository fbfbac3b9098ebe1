#include "models/gemma4/gemma4.h"

#include <algorithm>

#include "models/common/head.h"
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
  return model_info(config, config.layers.size(), {.loaded = false, .has_keys = false});
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
  output_spans_.reserve(size_t(activations_.max_rows));
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
  run_pass(pass_owner(), step, [&] {
    prepare_rotation(pass);
    ops_.embed({.ids = step.ids,
                .table = weights_.embedding,
                .out = pass.of(activations_.residual),
                .factor = config_.embedding_factor()});
    if (weights_.per_layer) embed_per_layer(*weights_.per_layer, step.ids, pass);
    run_layers(weights_.layers, 0, size_t(config_.owners), pass);
    run_rest(step, pass);
  });
}

// The layers behind the last owner leave nothing in the cache, so that only rows whose logits are
// wanted go through them. With a coded cache all rows do: a row reads those beside it uncoded. So
// they do in short steps that are recorded, in which there are no other spans than the step's.
void Gemma4::run_rest(const Step& step, const Pass& pass) {
  const OutputRows outputs = output_rows(step.outputs);
  if (outputs.count == 0) return;
  const bool every_row =
      outputs.count == pass.rows || pass.cache.coded() || ops_.records(pass.rows);
  const auto run = [&](const Pass& rows) {
    run_layers(weights_.layers, size_t(config_.owners), weights_.layers.size(), rows);
  };
  if (every_row) {
    run(pass);
  } else {
    narrow(step.spans, outputs, output_spans_);
    run({config_, ops_, pass.cache, activations_, output_spans_, outputs.first, outputs.count});
  }
  const View normed = step.hidden.empty() ? activations_.normed.view : step.hidden;
  ops_.rms_norm({.x = activations_.residual.view.slice(outputs.first, outputs.count),
                 .scale = weights_.final_scale,
                 .out = normed.slice(outputs.first, outputs.count),
                 .eps = config_.eps});
  score(ops_, normed, outputs, weights_.head, {step.logits, step.peaks, config_.soft_cap});
}

StepCost Gemma4::step_cost(int64_t rows, int64_t context, const KvRecipe& kv) const {
  Tally tally(rows, context, kv);
  add_step(config_, weights_, tally);
  return tally.cost();
}

}  // namespace slip::gemma4
