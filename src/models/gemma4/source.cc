#include "models/gemma4/source.h"

#include "models/draft_tokens.h"
#include "models/gemma4/gemma4.h"
#include "weights/checkpoint_source.h"
#include "weights/synthetic_source.h"

namespace slip::gemma4 {
namespace {

namespace fs = std::filesystem;

class Source : public FamilySource {
 public:
  explicit Source(const Shapes& shapes)
      : config_(shapes.target), drafter_(synthetic_drafter(shapes.drafter)) {}
  Source(const Config& config, std::shared_ptr<const Checkpoint> checkpoint, Prefixes prefixes)
      : config_(config),
        checkpoint_(std::move(checkpoint)),
        prefixes_(std::move(prefixes)),
        notes_(checkpoint_->notes()) {}

  // A drafter that was found and does not fit is no reason not to run the model; one that was asked
  // for is.
  void look_for_drafter();
  Status take_drafter(const fs::path& folder);

  bool has_mtp() const override { return drafter_.has_value(); }
  int64_t max_context() const override { return config_.max_context; }
  const std::vector<std::string>& notes() const override { return notes_; }
  Result<ModelPlan> plan(const ModelOptions& options, const Ops& ops) const override;
  Result<std::unique_ptr<Model>> load(const ModelOptions& options, Ops& ops, ThreadPool& pool,
                                      const LoadProgress& progress) const override;

 private:
  bool drafts(const ModelOptions& options) const { return options.with_mtp && drafter_; }
  Result<DrafterOptions> drafter_options(const ModelOptions& options) const;
  std::unique_ptr<WeightSource> weight_source() const;

  Config config_;
  std::shared_ptr<const Checkpoint> checkpoint_;  // null for synthetic weights
  Prefixes prefixes_;
  std::optional<DrafterFiles> drafter_;
  std::vector<std::string> notes_;
};

// As converted files are: layers in INT4, embeddings and what drafts in BF16.
WeightFormat published_format(const std::string& module) {
  const bool layer = module.find(".layers.") != std::string::npos;
  const bool small = module.find(".router.") != std::string::npos ||
                     module.find("per_layer_") != std::string::npos;
  return layer && !small ? WeightFormat::int4_group : WeightFormat::bf16;
}

void Source::look_for_drafter() {
  const std::optional<fs::path> found = find_drafter(checkpoint_->folder());
  if (!found) return;
  if (const Status taken = take_drafter(*found); !taken.ok())
    notes_.push_back(cat("a drafter lies in ", found->string(), ", but ", taken.failure().message,
                         "; drafting is off"));
}

Status Source::take_drafter(const fs::path& folder) {
  SLIP_TRY(drafter_, open_drafter(folder, config_));
  return {};
}

std::unique_ptr<WeightSource> Source::weight_source() const {
  if (!checkpoint_) return std::make_unique<SyntheticSource>(published_format);
  return std::make_unique<CheckpointSource>(*checkpoint_, ignored_prefixes(config_, prefixes_));
}

Result<DrafterOptions> Source::drafter_options(const ModelOptions& options) const {
  DrafterOptions drafting{*drafter_, {}, options.weights};
  // A clustered head chooses among all tokens as it is.
  const int64_t count = options.weights.draft_shortlist;
  if (count <= 0 || drafter_->token_order) return drafting;
  if (!checkpoint_) {
    drafting.draft_tokens = lowest_tokens(config_.vocabulary, count);
    return drafting;
  }
  SLIP_TRY(drafting.draft_tokens,
           choose_draft_tokens(checkpoint_->folder(), config_.vocabulary, count));
  return drafting;
}

Result<ModelPlan> Source::plan(const ModelOptions& options, const Ops& ops) const {
  WeightTable table;
  Weights weights;
  declare_weights({config_, prefixes_, options.weights}, table, weights);
  ModelPlan plan;
  SLIP_TRY(plan.weight_bytes, table.plan(*weight_source(), ops));
  plan.info = model_info(config_, drafts(options));
  plan.cache_specs = cache_specs(config_);
  plan.weights = table.placed();
  // Pages of the host cost nothing until they are written, so making them is the exact answer.
  plan.activation_bytes = Activations(config_, options.max_rows, host_memory()).bytes();
  const DrafterConfig* drafter = drafts(options) ? &drafter_->config : nullptr;
  plan.activation_bytes +=
      ops.scratch_bytes(step_limits(config_, drafter, options.max_rows, config_.max_context));
  if (!drafter) return plan;
  SLIP_TRY(const DrafterOptions drafting, drafter_options(options));
  SLIP_TRY_STATUS(add_to_plan(drafting, ops, plan));
  return plan;
}

Result<std::unique_ptr<Model>> Source::load(const ModelOptions& options, Ops& ops, ThreadPool& pool,
                                            const LoadProgress& progress) const {
  const std::unique_ptr<WeightSource> source = weight_source();
  std::optional<DrafterOptions> drafter;
  if (drafts(options)) {
    SLIP_TRY(DrafterOptions drafting, drafter_options(options));
    drafter.emplace(std::move(drafting));
  }
  SLIP_TRY(std::unique_ptr<Gemma4> model, Gemma4::load({.config = config_,
                                                        .prefixes = prefixes_,
                                                        .choices = options.weights,
                                                        .max_rows = options.max_rows,
                                                        .context = options.context,
                                                        .source = *source,
                                                        .files = checkpoint_,
                                                        .drafter = drafter ? &*drafter : nullptr},
                                                       ops, pool, progress));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace

Result<std::unique_ptr<FamilySource>> open_source(const JsonObject& config, const fs::path& folder,
                                                  const fs::path& drafter) {
  SLIP_TRY(const Config read, read_config(config, (folder / "config.json").string()));
  SLIP_TRY(Checkpoint checkpoint, Checkpoint::open(folder));
  SLIP_TRY(Prefixes prefixes, find_prefixes(checkpoint));
  auto source = std::make_unique<Source>(
      read, std::make_shared<const Checkpoint>(std::move(checkpoint)), std::move(prefixes));
  if (drafter.empty()) {
    source->look_for_drafter();
  } else {
    SLIP_TRY_STATUS(source->take_drafter(drafter));
  }
  return std::unique_ptr<FamilySource>(std::move(source));
}

std::unique_ptr<FamilySource> synthetic_source(const Shapes& shapes) {
  return std::make_unique<Source>(shapes);
}

}  // namespace slip::gemma4
