#include "models/model_source.h"

#include "checkpoint/config_reader.h"
#include "models/draft_tokens.h"
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
  source.notes_ = source.checkpoint_->notes();
  source.look_for_mtp();
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

// A layer that cannot draft is no reason not to run the model.
void ModelSource::look_for_mtp() {
  if (!qwen3_5::has_mtp_tensors(*checkpoint_, prefixes_)) {
    if (config_.mtp_layers > 0)
      notes_.push_back("config.json announces an MTP layer, the files hold none; drafting is off");
    return;
  }
  const std::vector<std::string> missing =
      qwen3_5::missing_mtp_tensors(config_, prefixes_, CheckpointSource(*checkpoint_, {}));
  has_mtp_ = missing.empty();
  if (!has_mtp_)
    notes_.push_back(cat("MTP layer incomplete: ", missing.size(), " tensors missing, first ",
                         missing.front(), "; drafting is off"));
}

Result<qwen3_5::Wanted> ModelSource::wanted(const ModelOptions& options) const {
  qwen3_5::Wanted wanted{.with_mtp = options.with_mtp && has_mtp_, .choices = options.weights};
  const int64_t count = options.weights.draft_shortlist;
  if (!wanted.with_mtp || count <= 0) return wanted;
  if (!checkpoint_) {
    wanted.draft_tokens = lowest_tokens(config_.vocabulary, count);
    return wanted;
  }
  SLIP_TRY(wanted.draft_tokens,
           choose_draft_tokens(checkpoint_->folder(), config_.vocabulary, count));
  return wanted;
}

std::unique_ptr<WeightSource> ModelSource::weight_source(bool with_mtp) const {
  if (!checkpoint_) return std::make_unique<SyntheticSource>(autoround_format);
  return std::make_unique<CheckpointSource>(
      *checkpoint_, qwen3_5::ignored_prefixes(config_, prefixes_, with_mtp));
}

Result<ModelPlan> ModelSource::plan(const ModelOptions& options, const Ops& ops) const {
  SLIP_TRY(const qwen3_5::Wanted wanted, this->wanted(options));
  WeightTable table;
  qwen3_5::Weights weights;
  qwen3_5::declare_weights({config_, prefixes_, wanted}, table, weights);
  const std::unique_ptr<WeightSource> source = weight_source(wanted.with_mtp);
  ModelPlan plan;
  SLIP_TRY(plan.weight_bytes, table.plan(*source, ops));
  plan.info = qwen3_5::model_info(config_, wanted.with_mtp);
  plan.cache_specs = qwen3_5::cache_specs(config_, wanted.with_mtp);
  plan.weights = table.placed();
  plan.activation_bytes =
      qwen3_5::activation_bytes(config_, options.max_rows) +
      ops.scratch_bytes(qwen3_5::step_limits(config_, options.max_rows, config_.max_context));
  return plan;
}

Result<std::unique_ptr<Model>> ModelSource::load(const ModelOptions& options, Ops& ops,
                                                 ThreadPool& pool,
                                                 const LoadProgress& progress) const {
  SLIP_TRY(const qwen3_5::Wanted wanted, this->wanted(options));
  const std::unique_ptr<WeightSource> source = weight_source(wanted.with_mtp);
  SLIP_TRY(std::unique_ptr<qwen3_5::Qwen35> model,
           qwen3_5::Qwen35::load({.config = config_,
                                  .prefixes = prefixes_,
                                  .wanted = wanted,
                                  .max_rows = options.max_rows,
                                  .context = options.context},
                                 *source, ops, pool, progress));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace slip
