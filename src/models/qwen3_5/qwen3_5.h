// Qwen3.5 as a Model.
#pragma once

#include <memory>

#include "models/common/text_model.h"
#include "models/qwen3_5/activations.h"
#include "models/qwen3_5/config.h"
#include "models/qwen3_5/weights.h"

namespace slip::qwen3_5 {

struct LoadOptions {
  const Config& config;
  const Prefixes& prefixes;
  const Wanted& wanted;
  int64_t max_rows;
  int64_t context;
};

class Qwen35 : public TextModel {
 public:
  // `source` must hold what declare_weights() asks for under these prefixes.
  static Result<std::unique_ptr<Qwen35>> load(const LoadOptions& options, WeightSource& source,
                                              Ops& ops, ThreadPool& pool,
                                              const LoadProgress& progress);
  ~Qwen35() override { ops_.forget_steps(this); }

  StepCost step_cost(int64_t rows, int64_t context, const KvRecipe& kv) const override;
  StepCost draft_cost(int64_t context, const KvRecipe& kv) const override;
  int64_t max_rows() const override { return activations_.max_rows; }
  void forward(const Step& step, Cache& cache) override;
  void draft(std::span<const DraftStep> steps, Cache& cache) override;
  std::span<const int32_t> draft_tokens() const override { return weights_.draft_tokens; }
  uint64_t activation_bytes() const override { return activations_.bytes; }

 private:
  Qwen35(const LoadOptions& options, Ops& ops);
  void draft_once(const DraftStep& step, Cache& cache);

  Config config_;
  Weights weights_;
  Activations activations_;
  std::vector<Span> output_spans_;  // of the drafts that are wanted, while a pass of drafts runs
};

// The largest step, for backends to make room for.
StepLimits step_limits(const Config& config, int64_t max_rows, int64_t context);

ModelInfo info_of(const Config& config, bool with_mtp);

// The cache of every layer, and of the MTP layer after them.
std::vector<CacheSpec> cache_specs(const Config& config, bool with_mtp);

}  // namespace slip::qwen3_5
