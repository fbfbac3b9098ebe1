// Drafts tokens with a model's MTP layer, which has keys and values of its own.
//
// Slot p of the layer joins the hidden state of position p with the token at p + 1 and drafts the
// token at p + 2. It has keys and values of its own, which must hold every slot of the text so far.
// Slots are computed when they are needed: all that are outstanding go with the first draft.
#pragma once

#include <vector>

#include "engine/drafter.h"

namespace slip {

class MtpDrafter : public Drafter {
 public:
  MtpDrafter(Model& model, Cache& cache, SequenceId sequence, Memory& memory);

  // f32 values that it allocates, logits aside.
  static int64_t values(const ModelInfo& info, int64_t max_rows);

  void clear() override;
  void follow(const View& hidden, std::span<const int32_t> ids) override;
  std::optional<LogitRow> draft_after(int32_t next) override;
  std::optional<LogitRow> draft_on(int32_t draft) override;

 private:
  enum class Wanted : uint8_t { nothing, last };
  // One pass over slots that begin at `start`; false when the cache has no room for them.
  bool run(const View& hidden, std::span<const int32_t> ids, int64_t start, Wanted wanted);
  // Computes the first `rows` outstanding slots.
  void settle(int64_t rows);

  Model& model_;
  Cache& cache_;
  SequenceId sequence_;
  Memory& memory_;  // of the tensors below

  // Slots next_slot_, next_slot_ + 1, ... whose keys are not in the cache yet. The last hidden
  // state still waits for the token that follows it.
  int64_t next_slot_ = 0;
  int64_t complete_ = 0;
  bool open_ = false;
  int32_t drafted_after_ = -1;  // the open slot was computed with this token

  int64_t draft_slot_ = 0;    // of the last pass that drafted
  int64_t passed_rows_ = 0;   // of that pass
  std::vector<int32_t> ids_;  // of the outstanding slots
  Tensor hidden_;             // [max_rows, hidden]
  Tensor step_ids_;           // i32 [max_rows]
  Tensor passed_;             // [max_rows, hidden]: what the layer hands on to the next draft
  DraftLogits logits_;
};

}  // namespace slip
