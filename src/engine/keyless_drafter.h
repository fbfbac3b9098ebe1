// Drafts tokens with a model's drafter that reads the model's own keys and values (Gemma's
// assistants). It needs the hidden state of the last position alone, stands there for all drafts of
// a round, and leaves nothing in the cache.
#pragma once

#include "engine/drafter.h"

namespace slip {

class KeylessDrafter : public Drafter {
 public:
  KeylessDrafter(Model& model, Cache& cache, SequenceId sequence, Memory& memory);

  // f32 values that it allocates, logits aside.
  static int64_t values(const ModelInfo& info) { return 2 * info.hidden + 1; }

  void clear() override {}
  void follow(const View& hidden, std::span<const int32_t> ids) override;
  std::optional<LogitRow> draft_after(int32_t next) override;
  std::optional<LogitRow> draft_on(int32_t draft) override;

 private:
  LogitRow run(const View& hidden, int32_t id);

  Model& model_;
  Cache& cache_;
  SequenceId sequence_;
  Memory& memory_;  // of the tensors below
  Tensor id_;       // i32 [1]
  Tensor hidden_;   // [1, hidden]: of the last position
  Tensor passed_;   // [1, hidden]: what a draft hands on to the next
  DraftLogits logits_;
};

}  // namespace slip
