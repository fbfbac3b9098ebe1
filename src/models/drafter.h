// What drafts tokens for a model: a layer of its own, or a small model beside it. It never decides.
#pragma once

#include <span>

#include "models/model.h"

namespace slip {

// One pass of the drafter: slot p joins the final-normed hidden state of position p with token
// p + 1 and drafts token p + 2. It may write what the next one reads over what it reads itself.
struct DraftStep {
  View ids;                     // i32 [rows], the tokens that follow
  View hidden;                  // [rows, hidden]
  std::span<const Span> spans;  // position p of the hidden states; the last one, without own keys
  std::span<const int64_t> outputs;  // rows whose logits are wanted
  View logits;                       // [outputs, tokens() or vocabulary]
  View next_hidden;                  // [outputs, hidden] for the next draft; may be empty
  View peaks{};                      // i32 [outputs, 3]; may be empty
  View next_ids{};                   // i32 [outputs]: the peaks' tokens; may be empty
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  virtual DrafterKeys keys() const = 0;
  // Of a pass.
  virtual int64_t max_rows() const = 0;
  // The tokens that the columns of its logits stand for, rising; empty: the whole vocabulary. Peaks
  // have the tokens themselves.
  virtual std::span<const int32_t> tokens() const = 0;

  // Of one draft.
  virtual StepCost cost(int64_t context, const KvRecipe& kv) const = 0;

  // Several passes run one after the other without the host; their spans are neighbours, and each
  // has a row for every output of the first. `cache` is the model's.
  virtual void draft(std::span<const DraftStep> steps, Cache& cache) = 0;
};

}  // namespace slip
