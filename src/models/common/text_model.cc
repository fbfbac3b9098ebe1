#include "models/common/text_model.h"

#include "models/common/step_key.h"

namespace slip {

void TextModel::draft(const DraftStep&, Cache&) {
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

void TextModel::run_forward(const Step& step, FunctionRef<void()> body) {
  const int64_t rows = step.ids.shape[0];
  check(rows <= max_rows(), "a step of ", rows, " rows; the model was made for ", max_rows());
  const StepKey key =
      step_key(this, PassKind::forward, rows, step.outputs,
               {step.ids.data, step.logits.data, step.hidden.data, step.peaks.data});
  ops_.run_step(key, step.spans, body);
}

}  // namespace slip
