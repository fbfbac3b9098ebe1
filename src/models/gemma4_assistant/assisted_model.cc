#include "models/gemma4_assistant/assisted_model.h"

namespace slip::gemma4_assistant {

AssistedModel::AssistedModel(std::unique_ptr<gemma4::Gemma4> model,
                             std::unique_ptr<Assistant> assistant)
    : model_(std::move(model)),
      assistant_(std::move(assistant)),
      info_(model_->info()),
      placed_(model_->placed_weights()) {
  info_.drafter = assistant_->keys();
  for (PlacedWeight& weight : assistant_->placed_weights()) placed_.push_back(std::move(weight));
}

uint64_t AssistedModel::weight_bytes() const {
  return model_->weight_bytes() + assistant_->weight_bytes();
}

}  // namespace slip::gemma4_assistant
