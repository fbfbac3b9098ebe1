#include "models/qwen3_5/qwen3_5.h"

#include <algorithm>

#include "models/common/head.h"
#include "models/common/step_key.h"
#include "models/qwen3_5/cost.h"
#include "models/qwen3_5/forward.h"

namespace slip::qwen3_5 {
namespace {

PagedKvSpec kv_spec(const Config& config) {
  return {config.attention.kv_heads, config.attention.head_dim};
}

RecurrentSpec recurrent_spec(const Config& config) {
  const DeltaNetConfig& delta = config.delta_net;
  return {delta.key_heads, delta.value_heads,    delta.key_dim,
          delta.value_dim, delta.conv_width - 1, delta.conv_channels()};
}

}  // namespace

StepLimits step_limits(const Config& config, int64_t max_rows, int64_t context) {
  StepLimits limits;
  limits.rows = max_rows;
  limits.hidden = config.hidden;
  limits.q_heads = config.attention.q_heads;
  limits.head_dim = config.attention.head_dim;
  limits.context = context;
  limits.widest_input =
      std::max({2 * config.hidden, config.attention.q_heads * config.attention.head_dim,
                config.delta_net.value_size(), config.mlp_width});
  if (config.experts) {
    limits.top_k = config.experts->top_k;
    limits.experts = config.experts->experts;
    limits.expert_width = std::max(config.experts->width, config.experts->shared_width);
    limits.widest_input = std::max(limits.widest_input, limits.expert_width);
  }
  return limits;
}

std::vector<CacheSpec> cache_specs(const Config& config, bool with_mtp) {
  std::vector<CacheSpec> specs;
  for (const LayerKind kind : config.layers) {
    switch (kind) {
      case LayerKind::attention: specs.emplace_back(kv_spec(config)); break;
      case LayerKind::delta_net: specs.emplace_back(recurrent_spec(config)); break;
    }
  }
  if (with_mtp) specs.emplace_back(kv_spec(config));
  return specs;
}

ModelInfo model_info(const Config& config, bool with_mtp) {
  return {.family = config.family,
          .vocabulary = config.vocabulary,
          .hidden = config.hidden,
          .layers = int64_t(config.layers.size()),
          .max_context = config.max_context,
          .experts = config.experts ? config.experts->experts : 0,
          .experts_per_token = config.experts ? config.experts->top_k : 0,
          .has_mtp = with_mtp};
}

Qwen35::Qwen35(const LoadOptions& options, Ops& ops)
    : config_(options.config),
      info_(model_info(options.config, options.wanted.with_mtp)),
      cache_specs_(qwen3_5::cache_specs(options.config, options.wanted.with_mtp)),
      ops_(ops),
      activations_(options.config, options.max_rows, ops.memory()) {
  ops_.reserve(step_limits(config_, options.max_rows, options.context));
}

Result<std::unique_ptr<Qwen35>> Qwen35::load(const LoadOptions& options, WeightSource& source,
                                             Ops& ops, ThreadPool& pool,
                                             const LoadProgress& progress) {
  std::unique_ptr<Qwen35> model(new Qwen35(options, ops));
  declare_weights({options.config, options.prefixes, options.wanted}, model->table_,
                  model->weights_);
  SLIP_TRY(model->storage_, model->table_.load(source, ops, pool, progress));
  finish_weights(options.config, model->weights_);
  return model;
}

void Qwen35::forward(const Step& step, Cache& cache) {
  const int64_t rows = step.ids.shape[0];
  check(rows <= max_rows(), "a step of ", rows, " rows; the model was made for ", max_rows());
  const StepKey key =
      step_key(this, PassKind::forward, rows, step.outputs,
               {step.ids.data, step.logits.data, step.hidden.data, step.peaks.data});
  ops_.run_step(key, step.spans, [&] {
    Pass pass{config_, ops_, cache, activations_, step.spans, rows};
    const View residual = activations_.residual.view.first(rows);
    const View normed = step.hidden.empty() ? activations_.normed.view.first(rows) : step.hidden;
    prepare_rotation(pass);
    ops_.embed({.ids = step.ids, .table = weights_.embedding, .out = residual});
    for (size_t i = 0; i < weights_.layers.size(); ++i) decoder_layer(weights_.layers[i], i, pass);
    ops_.rms_norm(
        {.x = residual, .scale = weights_.final_scale, .out = normed, .eps = config_.eps});
    score(ops_, normed, output_rows(step.outputs), weights_.head, {step.logits, step.peaks});
  });
}

StepCost Qwen35::step_cost(int64_t rows, int64_t context, const KvRecipe& kv) const {
  return qwen3_5::step_cost({config_, weights_, context, kv}, rows);
}

StepCost Qwen35::draft_cost(int64_t context, const KvRecipe& kv) const {
  return qwen3_5::draft_cost({config_, weights_, context, kv});
}

}  // namespace slip::qwen3_5
