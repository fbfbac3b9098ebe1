// Qwen3.5 as a Model, and its MTP layer (multi-token prediction) as a Drafter.
#pragma once

#include <memory>

#include "models/common/text_model.h"
#include "models/qwen3_5/activations.h"
#include "models/qwen3_5/config.h"
#include "models/qwen3_5/weights.h"

namespace slip::qwen3_5 {

struct LoadOptions {
  Declaration weights;
  int64_t max_rows;
  int64_t context;
};

class MtpDrafter : public Drafter {
 public:
  // Of a model that owns all this.
  MtpDrafter(const PassOwner& model, const Config& config, const Weights& weights,
             Activations& activations);

  DrafterKeys keys() const override { return DrafterKeys::own; }
  int64_t max_rows() const override { return model_.max_rows; }
  std::span<const int32_t> tokens() const override { return weights_.draft_tokens; }
  StepCost cost(int64_t context, const KvRecipe& kv) const override;
  void draft(std::span<const DraftStep> steps, Cache& cache) override;

 private:
  void draft_once(const DraftStep& step, Cache& cache);

  PassOwner model_;
  const Config& config_;
  const Weights& weights_;
  Activations& activations_;
  std::vector<Span> output_spans_;  // of the drafts that are wanted, while a pass runs
};

class Qwen35 : public TextModel {
 public:
  // `source` must hold what declare_weights() asks for under these prefixes.
  static Result<std::unique_ptr<Qwen35>> load(const LoadOptions& options, WeightSource& source,
                                              Ops& ops, ThreadPool& pool,
                                              const LoadProgress& progress);
  ~Qwen35() override { ops_.forget_steps(this); }

  StepCost step_cost(int64_t rows, int64_t context, const KvRecipe& kv) const override;
  int64_t max_rows() const override { return activations_.max_rows; }
  void forward(const Step& step, Cache& cache) override;
  Drafter* drafter() override { return mtp_ ? &*mtp_ : nullptr; }

 private:
  Qwen35(const LoadOptions& options, Ops& ops);

  Config config_;
  Weights weights_;
  Activations activations_;
  std::optional<MtpDrafter> mtp_;
};

// The largest step, for backends to make room for.
StepLimits step_limits(const Config& config, int64_t max_rows, int64_t context);

ModelInfo info_of(const Config& config, bool with_mtp);

// The cache of every layer, and of the MTP layer after them.
std::vector<CacheSpec> cache_specs(const Config& config, bool with_mtp);

}  // namespace slip::qwen3_5
