#include "models/common/text_model.h"

namespace slip {

void TextModel::draft(std::span<const DraftStep>, Cache&) {
  check(false, "draft() on a model that does not draft");
}

StepCost TextModel::draft_cost(int64_t, const KvRecipe&) const {
  check(false, "draft_cost() of a model that does not draft");
  return {};
}

Status TextModel::load_weights(WeightTable& table, WeightSource& source, ThreadPool& pool,
                               const LoadProgress& progress) {
  SLIP_TRY(storage_, table.load(source, ops_, pool, progress));
  placed_ = table.placed();
  return {};
}

}  // namespace slip
