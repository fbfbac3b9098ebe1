#include "engine/drafter.h"

#include <algorithm>
#include <cmath>

#include "engine/keyless_drafter.h"
#include "engine/mtp_drafter.h"

namespace slip {

std::unique_ptr<Drafter> make_drafter(Model& model, Cache& cache, SequenceId sequence,
                                      Memory& memory) {
  if (model.info().drafter_has_keys)
    return std::make_unique<MtpDrafter>(model, cache, sequence, memory);
  return std::make_unique<KeylessDrafter>(model, cache, sequence, memory);
}

int64_t drafter_values(const ModelInfo& info, int64_t max_rows) {
  return DraftLogits::values(info) + (info.drafter_has_keys ? MtpDrafter::values(info, max_rows)
                                                            : KeylessDrafter::values(info));
}

DraftLogits::DraftLogits(const Model& model, Memory& memory) : model_(model) {
  const auto tokens = int64_t(model.draft_tokens().size());
  logits_ = Logits(memory, 1, tokens > 0 ? tokens : model.info().vocabulary);
  if (tokens == 0) return;
  spread_ = Logits(host_memory(), 1, model.info().vocabulary);
  std::ranges::fill(spread_.row(0), -INFINITY);
}

LogitRow DraftLogits::row() {
  const std::span<const int32_t> tokens = model_.draft_tokens();
  if (tokens.empty()) return {logits_, 0};
  const std::span<const float> few = logits_.row(0);
  const std::span<float> all = spread_.row(0);
  for (size_t i = 0; i < tokens.size(); ++i) all[size_t(tokens[i])] = few[i];
  return {spread_, 0};
}

}  // namespace slip
