// A Gemma 4 model before it is loaded: from files, or of a published shape with random weights.
#pragma once

#include <filesystem>

#include "models/common/prefixes.h"
#include "models/common/weight_origin.h"
#include "models/gemma4/gemma4.h"

namespace slip::gemma4 {

class Source : public FamilySource {
 public:
  // `config` is the folder's config.json.
  static Result<std::unique_ptr<Source>> open(const JsonObject& config,
                                              const std::filesystem::path& folder);
  static std::unique_ptr<Source> synthetic(const Config& config, Release release);

  const Config& config() const { return config_; }
  const WeightOrigin& origin() const { return origin_; }
  std::vector<std::string>& warnings() { return warnings_; }

  bool can_draft() const override { return false; }
  int64_t max_context() const override { return config_.max_context; }
  std::vector<std::string> notes() const override { return origin_.notes(); }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  Result<ModelPlan> plan(const ModelOptions& options, const Ops& ops) const override {
    return plan_beside({}, options, ops);
  }
  Result<std::unique_ptr<Model>> load(const ModelOptions& options, Ops& ops, ThreadPool& pool,
                                      const LoadProgress& progress) const override;

  // The same with scratch that is also large enough for steps of something else.
  Result<ModelPlan> plan_beside(const StepLimits& other, const ModelOptions& options,
                                const Ops& ops) const;
  Result<std::unique_ptr<Gemma4>> load_beside(const StepLimits& other, const ModelOptions& options,
                                              Ops& ops, ThreadPool& pool,
                                              const LoadProgress& progress) const;

 private:
  Source(const Config& config, WeightOrigin origin, TextPrefixes prefixes)
      : config_(config), origin_(std::move(origin)), prefixes_(std::move(prefixes)) {
    warn_of_unknown_keys("config.json", config_, warnings_);
    if (origin_.files()) warn_of_unused_head(*origin_.files(), config_, prefixes_, warnings_);
  }

  std::unique_ptr<WeightSource> weight_source() const {
    return origin_.open(ignored_prefixes(config_, prefixes_));
  }

  Config config_;
  WeightOrigin origin_;
  TextPrefixes prefixes_;
  std::vector<std::string> warnings_;
};

}  // namespace slip::gemma4
