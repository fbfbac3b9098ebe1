#include "engine/engine.h"

#include <algorithm>

#include "engine/batch_drafter.h"
#include "engine/drafter.h"

namespace slip {
namespace {

bool drafts(const ModelInfo& info, const EngineOptions& options) {
  return options.max_drafts > 0 && info.can_draft;
}

// Options with what drafting and the backend need filled in.
EngineOptions settle(const ModelSource& source, EngineOptions options, const Ops& ops) {
  check(options.max_drafts >= 0 && options.max_drafts <= kMaxDrafts, "max_drafts ",
        options.max_drafts);
  if (!source.can_draft()) options.max_drafts = 0;
  if (options.max_rows == 0) options.max_rows = ops.prompt_rows();
  // Every sequence has a row in every step.
  const int64_t sequences = options.memory.sequences;
  options.max_rows = std::max(options.max_rows, sequences == 0 ? kMostSequences : sequences);
  if (options.max_drafts > 0) {
    options.with_drafter = true;
    options.memory.record_rows = options.max_drafts + 1;
    options.logit_rows = std::max(options.logit_rows, options.max_drafts + 1);
    if (sequences != 1) {
      const int64_t draft_rows = kDraftingSequences * options.max_drafts;
      options.logit_rows = std::max(options.logit_rows, draft_rows);
      options.max_rows += draft_rows;
    }
  }
  options.memory.step_rows = options.max_rows;
  options.memory.kv = options.memory.kv.value_or(ops.usual_kv(sequences));
  return options;
}

ModelOptions model_options(const EngineOptions& options, int64_t context) {
  return {.max_rows = options.max_rows,
          .context = context,
          .with_drafter = options.with_drafter,
          .weights = options.weights};
}

Result<MemoryPlan> plan_settled(const ModelSource& source, const EngineOptions& options,
                                const Ops& ops) {
  SLIP_TRY(ModelPlan model, source.plan(model_options(options, 0), ops));
  int64_t values = options.logit_rows * model.info.vocabulary;
  if (model.info.can_draft) values += options.max_rows * model.info.hidden;
  if (drafts(model.info, options)) values += drafter_values(model.info, options.max_rows);
  model.activation_bytes += uint64_t(values) * sizeof(float);
  MemoryRequest request = options.memory;
  if (request.sequences != 1) {
    const auto row = uint64_t(model.info.vocabulary) * sizeof(float);  // of logits
    request.bytes_per_running = row;
    if (drafts(model.info, options)) {
      request.bytes_per_running += row;
      request.bytes_per_slot = BatchDrafter::bytes_per_sequence(model.info);
    }
  }
  return plan_memory(model, request, ops.memory().free_bytes());
}

}  // namespace

Result<MemoryPlan> Engine::plan(const ModelSource& source, const EngineOptions& options,
                                const Ops& ops) {
  return plan_settled(source, settle(source, options, ops), ops);
}

Result<std::unique_ptr<Engine>> Engine::load(const ModelSource& source,
                                             const EngineOptions& requested, Ops& ops,
                                             ThreadPool& pool, const LoadProgress& progress) {
  const EngineOptions options = settle(source, requested, ops);
  std::unique_ptr<Engine> engine(new Engine);
  SLIP_TRY(engine->plan_, plan_settled(source, options, ops));
  SLIP_TRY(engine->model_,
           source.load(model_options(options, engine->plan_.context), ops, pool, progress));
  engine->cache_ =
      std::make_unique<Cache>(engine->model_->cache_specs(), engine->plan_.cache_format,
                              engine->plan_.cache_size(), ops.memory());
  const ModelInfo& info = engine->model_->info();
  engine->max_drafts_ = drafts(info, options) ? options.max_drafts : 0;
  engine->invariant_rows_ = ops.invariant_rows();
  engine->memory_ = &ops.memory();
  engine->ids_ = Tensor(ops.memory(), DType::i32, {options.max_rows});
  const int64_t shared_rows = engine->sequences() > 1 ? engine->sequences() : 0;
  engine->logits_ = Logits(ops.memory(), options.logit_rows + shared_rows, info.vocabulary);
  if (info.can_draft) engine->hidden_ = HostRows(ops.memory(), options.max_rows, info.hidden);
  return engine;
}

}  // namespace slip
