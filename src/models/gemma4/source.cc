#include "models/gemma4/source.h"

#include <algorithm>

namespace slip::gemma4 {
namespace {

// Published files are BF16. Converted ones have layers in another format, embeddings still in BF16.
SyntheticSource::FormatRule formats_of(Release release) {
  return [layers = format_of(release)](const std::string& module) {
    const bool layer = module.find(".layers.") != std::string::npos;
    const bool small = module.find(".router.") != std::string::npos ||
                       module.find("per_layer_") != std::string::npos;
    return layer && !small ? layers : WeightFormat::bf16;
  };
}

}  // namespace

Result<std::unique_ptr<Source>> Source::open(const JsonObject& config,
                                             const std::filesystem::path& folder) {
  SLIP_TRY(const Config read, read_config(config, (folder / "config.json").string()));
  SLIP_TRY(Checkpoint checkpoint, Checkpoint::open(folder));
  SLIP_TRY(TextPrefixes prefixes, find_text_prefixes(checkpoint, "Gemma 4"));
  return std::unique_ptr<Source>(
      new Source(read, WeightOrigin(std::move(checkpoint)), std::move(prefixes)));
}

std::unique_ptr<Source> Source::synthetic(const Config& config, Release release) {
  return std::unique_ptr<Source>(new Source(config, WeightOrigin(formats_of(release)), {}));
}

Result<ModelPlan> Source::plan_beside(const StepLimits& other, const ModelOptions& options,
                                      const Ops& ops) const {
  WeightTable table;
  Weights weights;
  declare_weights({config_, prefixes_, options.weights}, table, weights);
  SLIP_TRY(ModelPlan plan, plan_weights(table, *weight_source(), ops));
  plan.info = info_of(config_);
  plan.cache_specs = cache_specs(config_);
  plan.activation_bytes =
      Activations(config_, options.max_rows, nullptr).bytes +
      ops.scratch_bytes(
          step_limits(config_, options.max_rows, std::min(options.context, max_context()), other));
  return plan;
}

Result<std::unique_ptr<Gemma4>> Source::load_beside(const StepLimits& other,
                                                    const ModelOptions& options, Ops& ops,
                                                    ThreadPool& pool,
                                                    const LoadProgress& progress) const {
  const std::unique_ptr<WeightSource> source = weight_source();
  return Gemma4::load({.config = config_,
                       .prefixes = prefixes_,
                       .options = options,
                       .beside = other,
                       .source = *source,
                       .files = origin_.files()},
                      ops, pool, progress);
}

Result<std::unique_ptr<Model>> Source::load(const ModelOptions& options, Ops& ops, ThreadPool& pool,
                                            const LoadProgress& progress) const {
  SLIP_TRY(std::unique_ptr<Gemma4> model, load_beside({}, options, ops, pool, progress));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace slip::gemma4
