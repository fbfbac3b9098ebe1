// Drafts tokens with a model's MTP layer, one sequence at a time.
//
// Slot p of the layer joins the hidden state of position p with the token at p + 1 and drafts the
// token at p + 2. It has keys and values of its own, which must hold every slot of the text so far.
// Slots are computed when they are needed: all that are outstanding go with the first draft.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/logits.h"
#include "models/model.h"

namespace slip {

class MtpDrafter {
 public:
  MtpDrafter(Model& model, Cache& cache, SequenceId sequence, Memory& memory);

  // f32 values that a drafter allocates.
  static int64_t values(const ModelInfo& info, int64_t max_rows);

  void clear();

  // These tokens, with these hidden states [rows, hidden], are now part of the sequence.
  void follow(const View& hidden, std::span<const int32_t> ids);

  // Logits over the vocabulary for the token that follows `next`, which itself follows the
  // sequence. Nothing when the cache has no room.
  std::optional<LogitRow> draft_after(int32_t next);

  // The same for the token that follows `draft`, the one just drafted.
  std::optional<LogitRow> draft_on(int32_t draft);

 private:
  enum class Wanted : uint8_t { nothing, last };
  // One pass over slots that begin at `start`; false when the cache has no room for them.
  bool run(const View& hidden, std::span<const int32_t> ids, int64_t start, Wanted wanted);
  // Computes the first `rows` outstanding slots.
  void settle(int64_t rows);
  LogitRow drafted();

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
  Logits logits_;             // [1, tokens that can be drafted]
  Logits spread_;             // [1, vocabulary], on the host, when not all tokens can be drafted
};

}  // namespace slip
