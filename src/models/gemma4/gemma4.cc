#include "models/gemma4/gemma4.h"

#include <algorithm>

#include "models/common/head.h"
#include "models/gemma4/cost.h"
#include "models/gemma4/forward.h"

namespace slip::gemma4 {
namespace {

void cover_layers(const Config& config, StepLimits& limits) {
  cover(config, limits);
  limits.q_heads = std::max(limits.q_heads, config.q_heads);
  limits.widest_input = std::max(limits.widest_input, config.widest_mlp());
  for (const KindConfig& kind : config.kinds) {
    limits.head_dim = std::max(limits.head_dim, kind.head_dim);
    limits.widest_input = std::max(limits.widest_input, config.q_heads * kind.head_dim);
  }
}

}  // namespace

StepLimits step_limits(const Config& config, const DrafterConfig* drafter, int64_t max_rows,
                       int64_t context) {
  StepLimits limits;
  limits.rows = max_rows;
  limits.context = context;
  cover_layers(config, limits);
  if (!drafter) return limits;
  cover_layers(drafter->text, limits);
  limits.rows = std::max(limits.rows, kDraftRows);
  limits.widest_input = std::max(limits.widest_input, 2 * drafter->backbone);
  return limits;
}

ModelInfo info_of(const Config& config, bool with_drafter) {
  return model_info(config, config.layers.size(), {.loaded = with_drafter, .has_keys = false});
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
    : TextModel(info_of(load.config, load.drafter != nullptr), gemma4::cache_specs(load.config),
                ops),
      config_(load.config),
      files_(load.files),
      activations_(load.config, load.options.max_rows, ops.memory()) {
  output_spans_.reserve(size_t(activations_.max_rows));
  ops_.reserve(step_limits(config_, load.drafter ? &load.drafter->files.config : nullptr,
                           activations_.max_rows, load.options.context));
}

Result<std::unique_ptr<Gemma4>> Gemma4::load(const LoadOptions& load, Ops& ops, ThreadPool& pool,
                                             const LoadProgress& progress) {
  std::unique_ptr<Gemma4> model(new Gemma4(load, ops));
  WeightTable table;
  declare_weights({load.config, load.prefixes, load.options.weights}, table, model->weights_);
  SLIP_TRY_STATUS(model->load_weights(table, load.source, pool, progress));
  finish_weights(load.config, ops.memory(), model->weights_);
  if (!load.drafter) return model;
  const uint64_t before = model->storage_.size();
  const LoadProgress behind_the_model = [&](uint64_t done, uint64_t total) {
    if (progress) progress(before + done, before + total);
  };
  SLIP_TRY(model->drafter_, Drafter::load(*load.drafter, ops, pool, behind_the_model));
  for (PlacedWeight& weight : model->drafter_->placed_weights())
    model->placed_.push_back(std::move(weight));
  return model;
}

void Gemma4::forward(const Step& step, Cache& cache) {
  run_forward(step, [&] {
    const Pass pass{config_, ops_, cache, activations_, step.spans, 0, step.ids.shape[0]};
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

void Gemma4::draft(const DraftStep& step, Cache& cache) {
  check(drafter_ != nullptr, "draft() on a model without a drafter");
  drafter_->draft(step, {weights_.embedding, config_.embedding_factor()}, cache);
}

std::span<const int32_t> Gemma4::draft_tokens() const {
  if (!drafter_) return {};
  return drafter_->draft_tokens();
}

uint64_t Gemma4::weight_bytes() const {
  return storage_.size() + (drafter_ ? drafter_->weight_bytes() : 0);
}

uint64_t Gemma4::activation_bytes() const {
  return activations_.bytes + (drafter_ ? drafter_->activation_bytes() : 0);
}

StepCost Gemma4::step_cost(int64_t rows, int64_t context, const KvRecipe& kv) const {
  Tally tally(rows, context, kv);
  add_step(config_, weights_, tally);
  return tally.cost();
}

StepCost Gemma4::draft_cost(int64_t context, const KvRecipe& kv) const {
  check(drafter_ != nullptr, "draft_cost() of a model without a drafter");
  return drafter_->cost(weights_.embedding, context, kv);
}

}  // namespace slip::gemma4
