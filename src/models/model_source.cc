#include "models/model_source.h"

#include "checkpoint/config_reader.h"
#include "models/qwen3_5/activations.h"
#include "models/qwen3_5/qwen3_5.h"
#include "weights/checkpoint_source.h"
#include "weights/synthetic_source.h"

namespace slip {

Result<ModelSource> ModelSource::open(const std::filesystem::path& folder) {
  ModelSource source;
  SLIP_TRY(const JsonObject json, read_config_json(folder));
  SLIP_TRY(source.config_, qwen3_5::read_config(json, (folder / "config.json").string()));
  SLIP_TRY(Checkpoint checkpoint, Checkpoint::open(folder));
  source.checkpoint_ = std::make_unique<Checkpoint>(std::move(checkpoint));
  SLIP_TRY(source.prefixes_, qwen3_5::find_prefixes(*source.checkpoint_));
  source.has_mtp_ = qwen3_5::has_mtp_tensors(*source.checkpoint_, source.prefixes_);
  return source;
}

Result<ModelSource> ModelSource::synthetic(const std::string& shape) {
  const std::optional<qwen3_5::Config> config = qwen3_5::shape_by_name(shape);
  if (!config) {
    std::string names;
    for (const std::string& name : shape_names()) names += (names.empty() ? "" : ", ") + name;
    return error("no shape is called \"", shape, "\"; there are ", names);
  }
  ModelSource source;
  source.config_ = *config;
  source.has_mtp_ = config->mtp_layers > 0;
  return source;
}

std::vector<std::string> ModelSource::shape_names() { return qwen3_5::shape_names(); }

std::vector<std::string> ModelSource::notes() const {
  return checkpoint_ ? checkpoint_->notes() : std::vector<std::string>{};
}

std::unique_ptr<WeightSource> ModelSource::weight_source(bool with_mtp) const {
  if (!checkpoint_) return std::make_unique<SyntheticSource>(autoround_format);
  return std::make_unique<CheckpointSource>(
      *checkpoint_, qwen3_5::ignored_prefixes(config_, prefixes_, with_mtp));
}

Result<ModelPlan> ModelSource::plan(const ModelOptions& options, const Ops& ops) const {
  const bool with_mtp = options.with_mtp && has_mtp_;
  WeightTable table;
  qwen3_5::Weights weights;
  qwen3_5::declare_weights(config_, prefixes_, with_mtp, table, weights);
  const std::unique_ptr<WeightSource> source = weight_source(with_mtp);
  ModelPlan plan;
  SLIP_TRY(plan.weight_bytes, table.plan(*source, ops));
  plan.info = qwen3_5::model_info(config_, with_mtp);
  plan.cache_specs = qwen3_5::cache_specs(config_, with_mtp);
  plan.weights = table.placed();
  plan.activation_bytes =
      qwen3_5::activation_bytes(config_, options.max_rows) +
      ops.scratch_bytes(qwen3_5::step_limits(config_, options.max_rows, config_.max_context));
  return plan;
}

Result<std::unique_ptr<Model>> ModelSource::load(const ModelOptions& options, Ops& ops,
                                                 ThreadPool& pool,
                                                 const LoadProgress& progress) const {
  const bool with_mtp = options.with_mtp && has_mtp_;
  const std::unique_ptr<WeightSource> source = weight_source(with_mtp);
  SLIP_TRY(std::unique_ptr<qwen3_5::Qwen35> model,
           qwen3_5::Qwen35::load({.config = config_,
                                  .prefixes = prefixes_,
                                  .with_mtp = with_mtp,
                                  .max_rows = options.max_rows,
                                  .context = options.context},
                                 *source, ops, pool, progress));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace slip
