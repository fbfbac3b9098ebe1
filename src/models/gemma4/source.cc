#include "models/gemma4/source.h"

#include <algorithm>

#include "models/common/weight_origin.h"
#include "models/gemma4/gemma4.h"

namespace slip::gemma4 {
namespace {

namespace fs = std::filesystem;

// As converted files are: layers in INT4, embeddings and what drafts in BF16.
WeightFormat published_format(const std::string& module) {
  const bool layer = module.find(".layers.") != std::string::npos;
  const bool small = module.find(".router.") != std::string::npos ||
                     module.find("per_layer_") != std::string::npos;
  return layer && !small ? WeightFormat::int4_group : WeightFormat::bf16;
}

class Source : public FamilySource {
 public:
  Source(const Config& config, WeightOrigin origin, TextPrefixes prefixes,
         std::optional<DrafterFiles> drafter, std::vector<std::string> notes)
      : config_(config),
        origin_(std::move(origin)),
        prefixes_(std::move(prefixes)),
        drafter_(std::move(drafter)),
        notes_(std::move(notes)) {}

  bool can_draft() const override { return drafter_.has_value(); }
  int64_t max_context() const override { return config_.max_context; }
  const std::vector<std::string>& notes() const override { return notes_; }
  Result<ModelPlan> plan(const ModelOptions& options, const Ops& ops) const override;
  Result<std::unique_ptr<Model>> load(const ModelOptions& options, Ops& ops, ThreadPool& pool,
                                      const LoadProgress& progress) const override;

 private:
  // Nothing if nobody drafts.
  Result<std::optional<DrafterOptions>> drafter_options(const ModelOptions& options) const;
  std::unique_ptr<WeightSource> weight_source() const {
    return origin_.open(ignored_prefixes(config_, prefixes_));
  }

  Config config_;
  WeightOrigin origin_;
  TextPrefixes prefixes_;
  std::optional<DrafterFiles> drafter_;
  std::vector<std::string> notes_;
};

Result<std::optional<DrafterOptions>> Source::drafter_options(const ModelOptions& options) const {
  std::optional<DrafterOptions> drafting;
  if (!options.with_drafter || !drafter_) return drafting;
  drafting.emplace(DrafterOptions{*drafter_, {}, options.weights});
  // A clustered head chooses among all tokens as it is.
  if (drafter_->token_order) return drafting;
  SLIP_TRY(drafting->draft_tokens,
           origin_.draft_tokens(config_.vocabulary, options.weights.draft_shortlist));
  return drafting;
}

Result<ModelPlan> Source::plan(const ModelOptions& options, const Ops& ops) const {
  SLIP_TRY(const std::optional<DrafterOptions> drafter, drafter_options(options));
  WeightTable table;
  Weights weights;
  declare_weights({config_, prefixes_, options.weights}, table, weights);
  SLIP_TRY(ModelPlan plan, plan_weights(table, *weight_source(), ops));
  plan.info = info_of(config_, drafter.has_value());
  plan.cache_specs = cache_specs(config_);
  // Pages of the host cost nothing until they are written, so making them is the exact answer.
  plan.activation_bytes = Activations(config_, options.max_rows, host_memory()).bytes;
  plan.activation_bytes +=
      ops.scratch_bytes(step_limits(config_, drafter ? &drafter_->config : nullptr,
                                    options.max_rows, std::min(options.context, max_context())));
  if (drafter) SLIP_TRY_STATUS(add_to_plan(*drafter, ops, plan));
  return plan;
}

Result<std::unique_ptr<Model>> Source::load(const ModelOptions& options, Ops& ops, ThreadPool& pool,
                                            const LoadProgress& progress) const {
  SLIP_TRY(const std::optional<DrafterOptions> drafter, drafter_options(options));
  const std::unique_ptr<WeightSource> source = weight_source();
  SLIP_TRY(std::unique_ptr<Gemma4> model, Gemma4::load({.config = config_,
                                                        .prefixes = prefixes_,
                                                        .options = options,
                                                        .source = *source,
                                                        .files = origin_.files(),
                                                        .drafter = drafter ? &*drafter : nullptr},
                                                       ops, pool, progress));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace

Result<std::unique_ptr<FamilySource>> open_source(const JsonObject& config, const fs::path& folder,
                                                  const fs::path& drafter) {
  SLIP_TRY(const Config read, read_config(config, (folder / "config.json").string()));
  SLIP_TRY(Checkpoint checkpoint, Checkpoint::open(folder));
  SLIP_TRY(TextPrefixes prefixes, find_text_prefixes(checkpoint, "Gemma 4"));
  std::vector<std::string> notes = checkpoint.notes();
  SLIP_TRY(std::optional<DrafterFiles> drafts, choose_drafter(drafter, folder, read, notes));
  return std::unique_ptr<FamilySource>(
      std::make_unique<Source>(read, WeightOrigin(std::move(checkpoint)), std::move(prefixes),
                               std::move(drafts), std::move(notes)));
}

std::unique_ptr<FamilySource> synthetic_source(const Shapes& shapes) {
  return std::make_unique<Source>(shapes.target, WeightOrigin(published_format), TextPrefixes{},
                                  synthetic_drafter(shapes.drafter), std::vector<std::string>{});
}

}  // namespace slip::gemma4
