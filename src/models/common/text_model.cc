#include "models/common/text_model.h"

namespace slip {

Status TextModel::load_weights(WeightTable& table, WeightSource& source, ThreadPool& pool,
                               const LoadProgress& progress) {
  SLIP_TRY(storage_, table.load(source, ops_, pool, progress));
  placed_ = table.placed();
  return {};
}

}  // namespace slip
