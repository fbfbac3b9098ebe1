// What the engine sees of a model: what it must remember, what a step costs, and forward().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "kernels/ops.h"
#include "weights/weight_table.h"

namespace slip {

struct ModelInfo {
  std::string family;  // "qwen3_5_moe"
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t max_context = 0;  // positions the model was made for
  int64_t experts = 0;      // of a layer, and how many a token meets; 0: none
  int64_t experts_per_token = 0;
  bool can_draft = false;  // a drafter was found and loaded: an MTP layer, or a model beside it
  // The drafter has keys and values of its own, and must be shown every position. Otherwise it
  // reads the model's: then it needs the last hidden state alone, and all drafts of a round are
  // made at the last position.
  bool drafter_has_keys = true;
};

// One forward pass over rows of one or several sequences.
struct Step {
  View ids;                           // i32 [rows]
  std::span<const int32_t> host_ids;  // the same, for what is looked up before the step begins
  std::span<const Span> spans;        // cover all rows, in order
  std::span<const int64_t> outputs;   // rows whose logits are wanted, one after the other
  View logits;                        // [outputs, vocabulary]
  // [rows, hidden] after the final norm; may be empty. Rows without logits may be left out, unless
  // the drafter must be shown every position.
  View hidden;
  View peaks{};  // i32 [outputs, 3]: the Peak of each row; may be empty
};

// One pass of the drafter: slot p joins the final-normed hidden state of position p with token
// p + 1 and drafts token p + 2. It may write what the next one reads over what it reads itself.
struct DraftStep {
  View ids;                     // i32 [rows], the tokens that follow
  View hidden;                  // [rows, hidden]
  std::span<const Span> spans;  // position p of the hidden states; the last one, without own keys
  std::span<const int64_t> outputs;  // rows whose logits are wanted
  View logits;                       // [outputs, draft_tokens() or vocabulary]
  View next_hidden;                  // [outputs, hidden] for the next draft; may be empty
  View peaks{};                      // i32 [outputs, 3]; may be empty
  View next_ids{};                   // i32 [outputs]: the peaks' tokens; may be empty
};

// What one step must move and multiply, for bytes per step and the roofs.
struct StepCost {
  uint64_t weight_bytes = 0;
  uint64_t cache_bytes = 0;       // state in and out, keys and values of the context
  uint64_t integer_products = 0;  // multiplications of int8/int4 weights
  uint64_t float_products = 0;    // of all other weights, of attention and of the delta rule
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelInfo& info() const = 0;
  virtual const std::vector<CacheSpec>& cache_specs() const = 0;
  virtual const std::vector<PlacedWeight>& placed_weights() const = 0;

  // A step of `rows` tokens of one sequence with `context` positions before it, logits for each:
  // decoding with one row, verifying drafts with several. Weights that are made at load count as
  // they are kept.
  virtual StepCost step_cost(int64_t rows, int64_t context, const KvRecipe& kv) const = 0;
  // One draft; only if info().can_draft.
  virtual StepCost draft_cost(int64_t context, const KvRecipe& kv) const = 0;

  // Runs at most max_rows() rows; logits and cache are written, nothing is allocated.
  virtual int64_t max_rows() const = 0;
  virtual void forward(const Step& step, Cache& cache) = 0;

  // Only if info().can_draft; at most max_draft_rows() rows. Several passes run one after the other
  // without the host; their spans are neighbours, and each has a row for every output of the first.
  virtual int64_t max_draft_rows() const { return max_rows(); }
  virtual void draft(std::span<const DraftStep> steps, Cache& cache) = 0;

  // The tokens that the columns of a draft's logits stand for, rising; empty: the whole vocabulary.
  // Peaks have the tokens themselves.
  virtual std::span<const int32_t> draft_tokens() const { return {}; }

  // Bytes of weights and of activations; the rest of the memory is the cache's.
  virtual uint64_t weight_bytes() const = 0;
  virtual uint64_t activation_bytes() const = 0;
};

}  // namespace slip
