// A loaded model with its cache: what sessions run on.
#pragma once

#include <memory>

#include "engine/host_rows.h"
#include "engine/logits.h"
#include "engine/memory_plan.h"
#include "models/model_source.h"

namespace slip {

struct EngineOptions {
  MemoryRequest memory;
  WeightChoices weights;
  bool with_mtp = false;
  int64_t max_drafts = 0;  // tokens that one step may draft; 0: no drafting
  int64_t max_rows = 0;    // tokens of a prompt that are computed together; 0: as suits the backend
  int64_t logit_rows = 1;  // rows of logits that one step may produce, drafts aside
};

// The most tokens that a step may draft.
inline constexpr int64_t kMaxDrafts = 8;

class Engine {
 public:
  // What load() would take; the same numbers that it then uses.
  static Result<MemoryPlan> plan(const ModelSource& source, const EngineOptions& options,
                                 const Ops& ops);
  static Result<std::unique_ptr<Engine>> load(const ModelSource& source,
                                              const EngineOptions& options, Ops& ops,
                                              ThreadPool& pool, const LoadProgress& progress);

  Model& model() { return *model_; }
  Cache& cache() { return *cache_; }
  const MemoryPlan& memory() const { return plan_; }
  int64_t context() const { return plan_.context; }

  // 0 without drafting, and when the model has no layer for it.
  int64_t max_drafts() const { return max_drafts_; }

 private:
  friend class Session;

  Engine() = default;

  MemoryPlan plan_;
  int64_t max_drafts_ = 0;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Cache> cache_;
  Memory* memory_ = nullptr;  // the backend's
  Tensor ids_;                // i32 [max_rows]
  Logits logits_;             // [rows that may have logits, vocabulary]
  HostRows hidden_;           // [max_rows, hidden], only with MTP
};

}  // namespace slip
