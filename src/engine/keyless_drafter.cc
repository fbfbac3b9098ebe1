#include "engine/keyless_drafter.h"

namespace slip {

KeylessDrafter::KeylessDrafter(Model& model, Cache& cache, SequenceId sequence, Memory& memory)
    : model_(model),
      cache_(cache),
      sequence_(sequence),
      memory_(memory),
      id_(memory, DType::i32, {1}),
      hidden_(memory, DType::f32, {1, model.info().hidden}),
      passed_(memory, DType::f32, {1, model.info().hidden}),
      logits_(model, memory) {}

void KeylessDrafter::follow(const View& hidden, std::span<const int32_t> ids) {
  if (ids.empty()) return;
  const View last = hidden.slice(int64_t(ids.size()) - 1, 1);
  memory_.copy(hidden_.view.data, last.data, last.bytes());
}

std::optional<LogitRow> KeylessDrafter::draft_after(int32_t next) {
  return run(hidden_.view, next);
}

std::optional<LogitRow> KeylessDrafter::draft_on(int32_t draft) { return run(passed_.view, draft); }

LogitRow KeylessDrafter::run(const View& hidden, int32_t id) {
  const NoAllocScope no_alloc;
  const int64_t length = cache_.length(sequence_);
  check(length > 0, "a draft needs a sequence to follow");
  const Span span{.first_row = 0,
                  .rows = 1,
                  .start = length - 1,
                  .state_slot = Cache::state_slot(sequence_),
                  .pages = cache_.pages(sequence_)};
  const int64_t output = 0;
  memory_.upload(id_.view.data, &id, sizeof(id));
  model_.draft({.ids = id_.view,
                .hidden = hidden,
                .spans = {&span, 1},
                .outputs = {&output, 1},
                .logits = logits_.view(),
                .next_hidden = passed_.view,
                .peaks = logits_.peaks()},
               cache_);
  logits_.changed();
  return logits_.row();
}

}  // namespace slip
