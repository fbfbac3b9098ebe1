#include "engine/engine.h"

#include <algorithm>
#include <new>

#include "engine/draft_passes.h"
#include "engine/sampling.h"

namespace slip {
namespace {

bool drafts(const ModelInfo& info, const EngineOptions& options) {
  return options.max_drafts > 0 && info.drafter;
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

// Of one sequence; each that runs beside it has a row of logits more.
uint64_t step_buffer_bytes(const ModelInfo& info, const EngineOptions& options) {
  const auto rows = uint64_t(options.max_rows);
  return rows * sizeof(int32_t) + Logits::bytes(options.logit_rows, info.vocabulary) +
         (info.drafter ? rows * uint64_t(info.hidden) * sizeof(float) : 0);
}

StepBuffers make_step_buffers(const ModelInfo& info, const EngineOptions& options,
                              int64_t sequences, Ops& ops) {
  Memory& memory = ops.memory();
  const int64_t shared_rows = sequences > 1 ? sequences : 0;
  StepBuffers buffers;
  buffers.ids = Tensor(memory, DType::i32, {options.max_rows});
  buffers.logits = Logits(ops, options.logit_rows + shared_rows, info.vocabulary);
  if (info.drafter) buffers.hidden = HostRows(memory, options.max_rows, info.hidden);
  return buffers;
}

Result<MemoryPlan> plan_settled(const ModelSource& source, const EngineOptions& options,
                                const Ops& ops) {
  // The context is not known before the memory is divided; it will be no longer than this.
  const int64_t context = most_context(options.memory, source.max_context());
  SLIP_TRY(ModelPlan model, source.plan(model_options(options, context), ops));
  const ModelInfo& info = model.info;
  model.activation_bytes += step_buffer_bytes(info, options);
  MemoryRequest request = options.memory;
  if (request.sequences != 1) request.bytes_per_running = Logits::bytes(1, info.vocabulary);
  if (ops.memory().on_host() || ops.memory().is_taken_from_host()) {
    const uint64_t sampler = Sampler::most_bytes(info.vocabulary);
    request.bytes_per_running += sampler;
    // The request that starts next has one already.
    if (request.sequences != 1) model.activation_bytes += sampler;
  }
  if (drafts(info, options)) {
    const DraftPasses::Bytes drafter =
        DraftPasses::bytes(info, options.max_rows, options.max_drafts);
    model.activation_bytes += drafter.fixed;
    request.bytes_per_running += drafter.per_running;
    request.bytes_per_slot = drafter.per_sequence;
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
  const uint64_t free = ops.memory().free_bytes();
  try {
    SLIP_TRY_STATUS(engine->take_memory(source, options, ops, pool, progress));
  } catch (const std::bad_alloc&) {  // a budget may exceed what there is, and others take theirs
    return error("the memory ran out while the model was loaded: ",
                 describe_bytes(engine->plan_.total()), " were to be taken, ", describe_bytes(free),
                 " were free; allow less, or end what else takes memory")
        .about("memory budget");
  }
  return engine;
}

Status Engine::take_memory(const ModelSource& source, const EngineOptions& options, Ops& ops,
                           ThreadPool& pool, const LoadProgress& progress) {
  SLIP_TRY(model_, source.load(model_options(options, plan_.context), ops, pool, progress));
  cache_ = std::make_unique<Cache>(model_->cache_specs(), plan_.cache_format, plan_.cache_size(),
                                   ops.memory());
  const ModelInfo& info = model_->info();
  max_drafts_ = drafts(info, options) ? options.max_drafts : 0;
  ops_ = &ops;
  step_buffers_ = make_step_buffers(info, options, sequences(), ops);
  return {};
}

}  // namespace slip
