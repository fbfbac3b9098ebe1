// One byte budget, divided before anything is loaded. It says no early instead of failing late.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cache/cache.h"
#include "models/model_source.h"

namespace slip {

// As many sequences as a plan allows at once when it is not told.
inline constexpr int64_t kMostSequences = 32;

// Positions of a context that nobody asked for, where they fit. Of many sequences each adds so many
// to what all share, and may use more when the others do not.
inline constexpr int64_t kDefaultContext = 8192;

struct MemoryRequest {
  std::optional<uint64_t> budget{};  // bytes; default: what the machine has free, less a reserve
  std::optional<int64_t> context{};  // positions; default: most_context(), as far as they fit
  std::optional<KvRecipe> kv{};      // default: Ops::usual_kv()
  int64_t record_rows = 0;           // rows of a step that may be rejected
  int64_t step_rows = 0;             // rows of a step

  // Sequences that may run at once; 0: as many as suit the memory, with checkpoints.
  int64_t sequences = 1;
  // Positions that they share at the least where no context was asked for, as far as these fit and
  // the sequences can use them: one of few may then be as long as one of many.
  int64_t shared_positions = 0;
  // States of earlier texts that may be remembered; taken if they fit.
  int64_t checkpoints = 0;
  // Pages that all share; default: up to a whole context for each. Never less than one context.
  // Tests make them scarce; the verbs leave them to the plan.
  std::optional<int64_t> pages{};
  // What the engine needs beside the cache for every sequence that may run, and for every sequence
  // or checkpoint.
  uint64_t bytes_per_running = 0;
  uint64_t bytes_per_slot = 0;
};

struct MemoryPlan {
  uint64_t budget = 0;
  uint64_t weights = 0;
  uint64_t activations = 0;
  uint64_t state = 0;       // recurrent, of all sequences and checkpoints
  uint64_t kv = 0;          // keys and values of all pages
  int64_t context = 0;      // positions that one sequence may have
  int64_t sequences = 1;    // that may run at once
  int64_t checkpoints = 0;  // states that may be remembered besides
  int64_t pages = 0;        // shared by all of them
  int64_t max_context = 0;  // the model's
  CacheFormat cache_format;

  uint64_t total() const { return weights + activations + state + kv; }
  CacheSize cache_size() const { return {.sequences = sequences + checkpoints, .pages = pages}; }
  // Several lines for people.
  std::string describe() const;
};

// Positions of the longest context that a plan may allow, before the memory is known.
int64_t most_context(const MemoryRequest& request, int64_t max_context);

Result<MemoryPlan> plan_memory(const ModelPlan& model, const MemoryRequest& request,
                               uint64_t available);

// "12.3 GB", "456 MB"
std::string describe_bytes(uint64_t bytes);

}  // namespace slip
