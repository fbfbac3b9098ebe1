// Gemma 4 as a Model, with its drafter.
#pragma once

#include <memory>

#include "models/common/text_model.h"
#include "models/gemma4/activations.h"
#include "models/gemma4/config.h"
#include "models/gemma4/drafter.h"
#include "models/gemma4/forward.h"
#include "models/gemma4/weights.h"

namespace slip::gemma4 {

struct LoadOptions {
  const Config& config;
  const TextPrefixes& prefixes;
  const ModelOptions& options;
  WeightSource& source;
  std::shared_ptr<const Checkpoint> files;  // of the tables that stay in them; may be null
  const DrafterOptions* drafter = nullptr;
};

class Gemma4 : public TextModel {
 public:
  static Result<std::unique_ptr<Gemma4>> load(const LoadOptions& load, Ops& ops, ThreadPool& pool,
                                              const LoadProgress& progress);
  ~Gemma4() override { ops_.forget_steps(this); }

  StepCost step_cost(int64_t rows, int64_t context, const KvRecipe& kv) const override;
  StepCost draft_cost(int64_t context, const KvRecipe& kv) const override;
  int64_t max_rows() const override { return activations_.max_rows; }
  void forward(const Step& step, Cache& cache) override;
  int64_t max_draft_rows() const override { return kDraftRows; }
  void draft(const DraftStep& step, Cache& cache) override;
  std::span<const int32_t> draft_tokens() const override;
  uint64_t weight_bytes() const override;
  uint64_t activation_bytes() const override;

 private:
  Gemma4(const LoadOptions& load, Ops& ops);

  void run_rest(const Step& step, const Pass& pass);

  Config config_;
  std::shared_ptr<const Checkpoint> files_;
  Weights weights_;
  Activations activations_;
  std::vector<Span> output_spans_;  // of rows whose logits are wanted, while a step runs
  std::unique_ptr<Drafter> drafter_;
};

// The largest step, for backends to make room for.
StepLimits step_limits(const Config& config, const DrafterConfig* drafter, int64_t max_rows,
                       int64_t context);

ModelInfo info_of(const Config& config, bool with_drafter);

// The cache of every layer.
std::vector<CacheSpec> cache_specs(const Config& config);

}  // namespace slip::gemma4
