#include "models/gemma4_assistant/assisted_model.h"

namespace slip::gemma4_assistant {

AssistedModel::AssistedModel(std::unique_ptr<gemma4::Gemma4> model,
                             std::unique_ptr<Drafter> drafter)
    : model_(std::move(model)),
      drafter_(std::move(drafter)),
      info_(model_->info()),
      placed_(model_->placed_weights()) {
  info_.can_draft = true;
  for (PlacedWeight& weight : drafter_->placed_weights()) placed_.push_back(std::move(weight));
}

uint64_t AssistedModel::weight_bytes() const {
  return model_->weight_bytes() + drafter_->weight_bytes();
}

uint64_t AssistedModel::activation_bytes() const {
  return model_->activation_bytes() + drafter_->activation_bytes();
}

StepCost AssistedModel::draft_cost(int64_t context, const KvRecipe& kv) const {
  return drafter_->cost(model_->embedding().table, context, kv);
}

void AssistedModel::draft(std::span<const DraftStep> steps, Cache& cache) {
  drafter_->draft(steps, model_->embedding(), cache);
}

}  // namespace slip::gemma4_assistant
