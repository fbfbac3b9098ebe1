// A loaded model with its cache: what sessions run on.
#pragma once

#include <memory>

#include "engine/draft_counts.h"
#include "engine/host_rows.h"
#include "engine/logits.h"
#include "engine/memory_plan.h"
#include "models/model_source.h"

namespace slip {

struct EngineOptions {
  MemoryRequest memory;
  WeightChoices weights;
  bool with_drafter = false;
  int64_t max_drafts = 0;  // tokens that one step may draft; 0: no drafting
  int64_t max_rows = 0;    // tokens of a prompt that are computed together; 0: as suits the backend
  int64_t logit_rows = 1;  // rows of logits that a step of one sequence may have, drafts aside
};

// With several sequences, so many of them may have as many drafts in a step; more have fewer.
inline constexpr int64_t kDraftingSequences = 4;

// What a step of the model reads and writes. An engine runs one step at a time, so there is one of
// each: StepBatch fills them, and what they hold is good until the next step, whoever runs it.
struct StepBuffers {
  Tensor ids;       // i32 [max_rows]
  Logits logits;    // [rows that may have logits, vocabulary]
  HostRows hidden;  // [max_rows, hidden], only with MTP
};

class Engine {
 public:
  // What load() would take; the same numbers that it then uses.
  static Result<MemoryPlan> plan(const ModelSource& source, const EngineOptions& options,
                                 const Ops& ops);
  static Result<std::unique_ptr<Engine>> load(const ModelSource& source,
                                              const EngineOptions& requested, Ops& ops,
                                              ThreadPool& pool, const LoadProgress& progress);

  Model& model() { return *model_; }
  Cache& cache() { return *cache_; }
  Ops& ops() { return *ops_; }
  Memory& backend_memory() { return ops_->memory(); }
  StepBuffers& step_buffers() { return step_buffers_; }
  const MemoryPlan& memory() const { return plan_; }
  int64_t context() const { return plan_.context; }
  int64_t sequences() const { return plan_.sequences; }
  int64_t max_rows() const { return model_->max_rows(); }
  // Rows of a step that may have logits.
  int64_t logit_rows() const { return step_buffers_.logits.rows(); }
  // Of the backend: Ops::invariant_rows().
  int64_t invariant_rows() const { return ops_->invariant_rows(); }

  // 0 without drafting, and when the model has no layer for it.
  int64_t max_drafts() const { return max_drafts_; }

 private:
  Engine() = default;

  // What was planned. Throws std::bad_alloc when there is less.
  Status take_memory(const ModelSource& source, const EngineOptions& options, Ops& ops,
                     ThreadPool& pool, const LoadProgress& progress);

  MemoryPlan plan_;
  int64_t max_drafts_ = 0;
  Ops* ops_ = nullptr;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Cache> cache_;
  StepBuffers step_buffers_;
};

}  // namespace slip
