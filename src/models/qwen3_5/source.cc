#include "models/qwen3_5/source.h"

#include <algorithm>

#include "models/common/weight_origin.h"
#include "models/qwen3_5/activations.h"
#include "models/qwen3_5/qwen3_5.h"
#include "weights/checkpoint_source.h"

namespace slip::qwen3_5 {
namespace {

class Source : public FamilySource {
 public:
  Source(const Config& config, Release release)
      : config_(config), origin_(qwen_formats(release)), has_mtp_(config.mtp_layers > 0) {}
  Source(const Config& config, Checkpoint checkpoint, Prefixes prefixes);

  bool can_draft() const override { return has_mtp_; }
  int64_t max_context() const override { return config_.max_context; }
  std::vector<std::string> notes() const override { return origin_.notes(); }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  Result<ModelPlan> plan(const ModelOptions& options, const Ops& ops) const override;
  Result<std::unique_ptr<Model>> load(const ModelOptions& options, Ops& ops, ThreadPool& pool,
                                      const LoadProgress& progress) const override;

 private:
  void look_for_mtp();
  Result<Wanted> wanted(const ModelOptions& options) const;
  std::unique_ptr<WeightSource> weight_source(const Wanted& wanted) const {
    return origin_.open(ignored_prefixes(config_, prefixes_, wanted.with_mtp));
  }

  Config config_;
  WeightOrigin origin_;
  Prefixes prefixes_;
  bool has_mtp_ = false;
  std::vector<std::string> warnings_;
};

Source::Source(const Config& config, Checkpoint checkpoint, Prefixes prefixes)
    : config_(config), origin_(std::move(checkpoint)), prefixes_(std::move(prefixes)) {
  warn_of_unknown_keys("config.json", config_, warnings_);
  warn_of_unused_head(*origin_.files(), config_, prefixes_, warnings_);
  look_for_mtp();
}

// A layer that cannot draft is no reason not to run the model.
void Source::look_for_mtp() {
  if (!has_tensors(*origin_.files(), prefixes_.mtp)) {
    if (config_.mtp_layers > 0)
      warnings_.emplace_back(
          "config.json announces an MTP layer, the files hold none; drafting is off");
    return;
  }
  const std::vector<std::string> missing =
      missing_mtp_tensors(config_, prefixes_, CheckpointSource(*origin_.files(), {}));
  has_mtp_ = missing.empty();
  if (!has_mtp_)
    warnings_.push_back(cat("MTP layer incomplete: ", missing.size(), " tensors missing, first ",
                            missing.front(), "; drafting is off"));
}

Result<Wanted> Source::wanted(const ModelOptions& options) const {
  Wanted wanted{.with_mtp = options.with_drafter && has_mtp_, .choices = options.weights};
  if (!wanted.with_mtp) return wanted;
  SLIP_TRY(wanted.draft_tokens,
           origin_.draft_tokens(config_.vocabulary, options.weights.draft_shortlist));
  return wanted;
}

Result<ModelPlan> Source::plan(const ModelOptions& options, const Ops& ops) const {
  SLIP_TRY(const Wanted wanted, this->wanted(options));
  WeightTable table;
  Weights weights;
  declare_weights({config_, prefixes_, wanted}, table, weights);
  SLIP_TRY(ModelPlan plan, plan_weights(table, *weight_source(wanted), ops));
  mark_drafting(prefixes_, plan.weights);
  plan.info = info_of(config_, wanted.with_mtp);
  plan.cache_specs = cache_specs(config_, wanted.with_mtp);
  plan.activation_bytes = Activations(config_, options.max_rows, nullptr).bytes +
                          ops.scratch_bytes(step_limits(config_, options.max_rows,
                                                        std::min(options.context, max_context())));
  return plan;
}

Result<std::unique_ptr<Model>> Source::load(const ModelOptions& options, Ops& ops, ThreadPool& pool,
                                            const LoadProgress& progress) const {
  SLIP_TRY(const Wanted wanted, this->wanted(options));
  const std::unique_ptr<WeightSource> source = weight_source(wanted);
  SLIP_TRY(std::unique_ptr<Qwen35> model, Qwen35::load({.weights = {config_, prefixes_, wanted},
                                                        .max_rows = options.max_rows,
                                                        .context = options.context},
                                                       *source, ops, pool, progress));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace

Result<std::unique_ptr<FamilySource>> open_source(const JsonObject& config,
                                                  const std::filesystem::path& folder) {
  SLIP_TRY(const Config read, read_config(config, (folder / "config.json").string()));
  SLIP_TRY(Checkpoint checkpoint, Checkpoint::open(folder));
  SLIP_TRY(Prefixes prefixes, find_prefixes(checkpoint));
  return std::unique_ptr<FamilySource>(
      std::make_unique<Source>(read, std::move(checkpoint), std::move(prefixes)));
}

std::unique_ptr<FamilySource> synthetic_source(const Config& config, Release release) {
  return std::make_unique<Source>(config, release);
}

}  // namespace slip::qwen3_5
