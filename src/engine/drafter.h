// Drafts tokens for one sequence with what a model has for it.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "engine/logits.h"
#include "models/model.h"

namespace slip {

class Drafter {
 public:
  virtual ~Drafter() = default;

  virtual void clear() = 0;

  // These tokens, with these hidden states [rows, hidden], are now part of the sequence.
  virtual void follow(const View& hidden, std::span<const int32_t> ids) = 0;

  // Logits over the vocabulary for the token that follows `next`, which itself follows the
  // sequence. Nothing when the cache has no room.
  virtual std::optional<LogitRow> draft_after(int32_t next) = 0;

  // The same for the token that follows `draft`, the one just drafted.
  virtual std::optional<LogitRow> draft_on(int32_t draft) = 0;
};

// For a model with info().has_mtp.
std::unique_ptr<Drafter> make_drafter(Model& model, Cache& cache, SequenceId sequence,
                                      Memory& memory);

// f32 values that such a drafter allocates.
int64_t drafter_values(const ModelInfo& info, int64_t max_rows);

// Logits of one draft: over the vocabulary, or over the tokens that can be drafted, which are then
// spread over it.
class DraftLogits {
 public:
  DraftLogits(const Model& model, Memory& memory);

  static int64_t values(const ModelInfo& info) { return 2 * info.vocabulary; }

  View view() const { return logits_.view(1); }
  View peaks() { return logits_.peaks(1); }
  // A pass has written them.
  void changed() { logits_.changed(1); }
  LogitRow row();

 private:
  const Model& model_;
  Logits logits_;  // [1, tokens that can be drafted]
  Logits spread_;  // [1, vocabulary], on the host, when not all tokens can be drafted
};

}  // namespace slip
