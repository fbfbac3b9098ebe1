// What the engine sees of a model: what it must remember, what a step costs, and forward().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "kernels/ops.h"
#include "weights/weight_table.h"

namespace slip {

class Drafter;

// Where the keys and values are that a drafter reads. With its own it must be shown every position.
// With the model's it needs the last hidden state alone, and makes all drafts of a round at the
// last position.
enum class DrafterKeys : uint8_t { own, the_models };

struct ModelInfo {
  std::string family;  // "qwen3_5_moe"
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t max_context = 0;  // positions the model was made for
  int64_t experts = 0;      // of a layer, and how many a token meets; 0: none
  int64_t experts_per_token = 0;
  std::optional<DrafterKeys> drafter;  // if there is one and it is loaded
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

  // Runs at most max_rows() rows; logits and cache are written, nothing is allocated.
  virtual int64_t max_rows() const = 0;
  virtual void forward(const Step& step, Cache& cache) = 0;

  // What info().drafter tells of; null without one. It lives as long as the model.
  virtual Drafter* drafter() { return nullptr; }

  virtual uint64_t weight_bytes() const = 0;
};

}  // namespace slip
