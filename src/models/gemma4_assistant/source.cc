#include "models/gemma4_assistant/source.h"

#include "models/gemma4_assistant/assisted_model.h"
#include "models/gemma4_assistant/files.h"
#include "models/gemma4_assistant/shapes.h"

namespace slip::gemma4_assistant {
namespace {

class AssistedSource : public FamilySource {
 public:
  AssistedSource(std::unique_ptr<gemma4::Source> model, DrafterFiles drafter)
      : model_(std::move(model)), drafter_(std::move(drafter)) {}

  bool can_draft() const override { return true; }
  int64_t max_context() const override { return model_->max_context(); }
  std::vector<std::string> notes() const override { return model_->notes(); }
  const std::vector<std::string>& warnings() const override { return model_->warnings(); }
  Result<ModelPlan> plan(const ModelOptions& options, const Ops& ops) const override;
  Result<std::unique_ptr<Model>> load(const ModelOptions& options, Ops& ops, ThreadPool& pool,
                                      const LoadProgress& progress) const override;

 private:
  Result<DrafterOptions> drafter_options(const WeightChoices& choices) const;

  std::unique_ptr<gemma4::Source> model_;
  DrafterFiles drafter_;
};

Result<DrafterOptions> AssistedSource::drafter_options(const WeightChoices& choices) const {
  DrafterOptions options{drafter_, {}, choices};
  // A clustered head chooses among all tokens as it is.
  if (drafter_.token_order) return options;
  SLIP_TRY(options.draft_tokens,
           model_->origin().draft_tokens(model_->config().vocabulary, choices.draft_shortlist));
  return options;
}

Result<ModelPlan> AssistedSource::plan(const ModelOptions& options, const Ops& ops) const {
  if (!options.with_drafter) return model_->plan(options, ops);
  SLIP_TRY(const DrafterOptions drafter, drafter_options(options.weights));
  SLIP_TRY(ModelPlan plan, model_->plan_beside(step_limits(drafter_.config), options, ops));
  plan.info.drafter = DrafterKeys::the_models;
  SLIP_TRY_STATUS(add_to_plan(drafter, ops, plan));
  return plan;
}

Result<std::unique_ptr<Model>> AssistedSource::load(const ModelOptions& options, Ops& ops,
                                                    ThreadPool& pool,
                                                    const LoadProgress& progress) const {
  if (!options.with_drafter) return model_->load(options, ops, pool, progress);
  SLIP_TRY(const DrafterOptions drafting, drafter_options(options.weights));
  SLIP_TRY(std::unique_ptr<gemma4::Gemma4> model,
           model_->load_beside(step_limits(drafter_.config), options, ops, pool, progress));
  const uint64_t before = model->weight_bytes();
  const LoadProgress after_the_model = [&](uint64_t done, uint64_t total) {
    if (progress) progress(before + done, before + total);
  };
  SLIP_TRY(std::unique_ptr<Assistant> assistant,
           Assistant::load(drafting, model->embedding(), ops, pool, after_the_model));
  return std::unique_ptr<Model>(
      std::make_unique<AssistedModel>(std::move(model), std::move(assistant)));
}

}  // namespace

Result<std::unique_ptr<FamilySource>> with_drafter(std::unique_ptr<gemma4::Source> model,
                                                   const std::filesystem::path& folder,
                                                   const std::filesystem::path& asked_for) {
  const std::optional<std::filesystem::path> found =
      asked_for.empty() ? find_drafter(folder) : std::optional(asked_for);
  if (!found) return std::unique_ptr<FamilySource>(std::move(model));
  Result<DrafterFiles> drafter = open_drafter(*found, model->config());
  if (drafter.ok()) {
    warn_of_unknown_keys("the drafter's config.json", drafter.value().config.text,
                         model->warnings());
    return std::unique_ptr<FamilySource>(
        std::make_unique<AssistedSource>(std::move(model), std::move(drafter).value()));
  }
  if (!asked_for.empty()) return std::move(drafter).failure();
  // One that nobody asked for is no reason not to run the model.
  model->warnings().push_back(cat("a drafter lies in ", found->string(), ", but ",
                                  drafter.failure().message, "; drafting is off"));
  return std::unique_ptr<FamilySource>(std::move(model));
}

std::unique_ptr<FamilySource> synthetic_source(const std::string& name,
                                               const gemma4::Config& config, Release release) {
  return std::make_unique<AssistedSource>(gemma4::Source::synthetic(config, release),
                                          synthetic_drafter(drafter_shape(name, config)));
}

}  // namespace slip::gemma4_assistant
