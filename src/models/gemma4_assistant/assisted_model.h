// A Gemma 4 model and the assistant beside it, as one Model.
#pragma once

#include <memory>
#include <vector>

#include "models/gemma4/gemma4.h"
#include "models/gemma4_assistant/assistant.h"

namespace slip::gemma4_assistant {

class AssistedModel : public Model {
 public:
  AssistedModel(std::unique_ptr<gemma4::Gemma4> model, std::unique_ptr<Assistant> assistant);

  const ModelInfo& info() const override { return info_; }
  const std::vector<CacheSpec>& cache_specs() const override { return model_->cache_specs(); }
  const std::vector<PlacedWeight>& placed_weights() const override { return placed_; }
  uint64_t weight_bytes() const override;

  StepCost step_cost(int64_t rows, int64_t context, const KvRecipe& kv) const override {
    return model_->step_cost(rows, context, kv);
  }
  int64_t max_rows() const override { return model_->max_rows(); }
  void forward(const Step& step, Cache& cache) override { model_->forward(step, cache); }
  Drafter* drafter() override { return assistant_.get(); }

 private:
  std::unique_ptr<gemma4::Gemma4> model_;
  std::unique_ptr<Assistant> assistant_;  // reads the model's embedding
  ModelInfo info_;
  std::vector<PlacedWeight> placed_;  // of both
};

}  // namespace slip::gemma4_assistant
