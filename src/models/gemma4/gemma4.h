// Gemma 4 as a Model. It does not draft by itself: gemma4_assistant/ adds what does.
#pragma once

#include <memory>

#include "models/common/text_model.h"
#include "models/family.h"
#include "models/gemma4/activations.h"
#include "models/gemma4/config.h"
#include "models/gemma4/forward.h"
#include "models/gemma4/weights.h"

namespace slip::gemma4 {

struct LoadOptions {
  const Config& config;
  const TextPrefixes& prefixes;
  const ModelOptions& options;
  const StepLimits& beside;  // the largest step of what runs on the same scratch
  WeightSource& source;
  std::shared_ptr<const Checkpoint> files;  // of the tables that stay in them; may be null
};

// From tokens to the first residual.
struct Embedding {
  const Weight& table;
  float factor;
};

class Gemma4 : public TextModel {
 public:
  static Result<std::unique_ptr<Gemma4>> load(const LoadOptions& load, Ops& ops, ThreadPool& pool,
                                              const LoadProgress& progress);
  ~Gemma4() override { ops_.forget_steps(this); }

  StepCost step_cost(int64_t rows, int64_t context, const KvRecipe& kv) const override;
  int64_t max_rows() const override { return activations_.max_rows; }
  void forward(const Step& step, Cache& cache) override;

  Embedding embedding() const { return {weights_.embedding, config_.embedding_factor()}; }

 private:
  Gemma4(const LoadOptions& load, Ops& ops);

  Config config_;
  std::shared_ptr<const Checkpoint> files_;
  Weights weights_;
  Activations activations_;
};

// The largest step, for backends to make room for: of this model, and of what runs `beside` it.
StepLimits step_limits(const Config& config, int64_t max_rows, int64_t context, StepLimits beside);

ModelInfo info_of(const Config& config);

// The cache of every layer.
std::vector<CacheSpec> cache_specs(const Config& config);

}  // namespace slip::gemma4
