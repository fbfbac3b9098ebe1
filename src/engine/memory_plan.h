// One byte budget, divided before anything is loaded. It says no early instead of failing late.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cache/cache.h"
#include "models/model_source.h"

namespace slip {

struct MemoryRequest {
  std::optional<uint64_t> budget{};  // bytes; default: what the machine has free, less a reserve
  std::optional<int64_t> context{};  // positions; default: up to 8192, less if it does not fit
  KvRecipe kv{};
  int64_t record_rows = 0;  // rows of a step that may be rejected
};

struct MemoryPlan {
  uint64_t budget = 0;
  uint64_t weights = 0;
  uint64_t activations = 0;
  uint64_t state = 0;  // recurrent, one sequence
  uint64_t kv = 0;     // keys and values of `context` positions
  int64_t context = 0;
  int64_t max_context = 0;  // the model's
  CacheFormat cache_format;

  uint64_t total() const { return weights + activations + state + kv; }
  CacheSize cache_size() const {
    return {.sequences = 1, .pages = (context + kPageLen - 1) / kPageLen};
  }
  // Several lines for people.
  std::string describe() const;
};

Result<MemoryPlan> plan_memory(const ModelPlan& model, const MemoryRequest& request,
                               uint64_t available);

// "12.3 GB", "456 MB"
std::string describe_bytes(uint64_t bytes);

}  // namespace slip
