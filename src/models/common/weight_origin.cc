#include "models/common/weight_origin.h"

#include "models/draft_tokens.h"
#include "weights/checkpoint_source.h"

namespace slip {

std::vector<std::string> WeightOrigin::notes() const {
  return files_ ? files_->notes() : std::vector<std::string>{};
}

std::unique_ptr<WeightSource> WeightOrigin::open(std::vector<std::string> ignored_prefixes) const {
  if (!files_) return std::make_unique<SyntheticSource>(formats_);
  return std::make_unique<CheckpointSource>(*files_, std::move(ignored_prefixes));
}

Result<std::vector<int32_t>> WeightOrigin::draft_tokens(int64_t vocabulary, int64_t count) const {
  if (count <= 0) return std::vector<int32_t>{};
  if (count < kFewestDraftTokens)
    return error("a shortlist for drafts has at least ", kFewestDraftTokens,
                 " tokens to choose between, not ", count);
  if (!files_) return lowest_tokens(vocabulary, count);
  return choose_draft_tokens(files_->folder(), vocabulary, count);
}

Result<ModelPlan> plan_weights(WeightTable& table, WeightSource& source, const Ops& ops) {
  ModelPlan plan;
  SLIP_TRY(plan.weight_bytes, table.plan(source, ops));
  plan.weights = table.placed();
  return plan;
}

}  // namespace slip
