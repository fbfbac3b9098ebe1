#include "engine/mtp_drafter.h"

namespace slip {

MtpDrafter::MtpDrafter(Model& model, Cache& cache, SequenceId sequence, Memory& memory)
    : model_(model), cache_(cache), sequence_(sequence), memory_(memory), logits_(model, memory) {
  const int64_t rows = model.max_rows(), hidden = model.info().hidden;
  ids_.resize(size_t(rows));
  hidden_ = Tensor(memory, DType::f32, {rows, hidden});
  step_ids_ = Tensor(memory, DType::i32, {rows});
  passed_ = Tensor(memory, DType::f32, {rows, hidden});
}

int64_t MtpDrafter::values(const ModelInfo& info, int64_t max_rows) {
  return max_rows * (2 * info.hidden + 1);
}

void MtpDrafter::clear() {
  next_slot_ = complete_ = 0;
  open_ = false;
  drafted_after_ = -1;
}

void MtpDrafter::follow(const View& hidden, std::span<const int32_t> ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (open_ && ids[i] == drafted_after_) {
      ++next_slot_;  // its keys are in the cache since draft_after()
    } else if (open_) {
      ids_[size_t(complete_++)] = ids[i];
    }
    drafted_after_ = -1;
    if (complete_ == model_.max_rows()) settle(complete_);
    const View state = hidden.slice(int64_t(i), 1);
    memory_.copy(hidden_.view.slice(complete_, 1).data, state.data, state.bytes());
    open_ = true;
  }
}

void MtpDrafter::settle(int64_t rows) {
  // Room for these slots is there: their positions are part of the sequence.
  check(run(hidden_.view.first(rows), {ids_.data(), size_t(rows)}, next_slot_, Wanted::nothing),
        "no room for settled slots");
  next_slot_ += rows;
  complete_ = 0;
}

std::optional<LogitRow> MtpDrafter::draft_after(int32_t next) {
  check(open_, "a draft needs a sequence to follow");
  const int64_t rows = complete_ + 1;
  ids_[size_t(complete_)] = next;
  if (!run(hidden_.view.first(rows), {ids_.data(), size_t(rows)}, next_slot_, Wanted::last))
    return std::nullopt;
  // All but the open slot are settled; the open one is too, if `next` is what comes.
  const View state = hidden_.view.slice(complete_, 1);
  if (complete_ > 0) memory_.copy(hidden_.view.data, state.data, state.bytes());
  next_slot_ += complete_;
  complete_ = 0;
  drafted_after_ = next;
  draft_slot_ = next_slot_;
  return logits_.row();
}

std::optional<LogitRow> MtpDrafter::draft_on(int32_t draft) {
  if (!run(passed_.view.slice(passed_rows_ - 1, 1), {&draft, 1}, draft_slot_ + 1, Wanted::last))
    return std::nullopt;
  ++draft_slot_;
  return logits_.row();
}

bool MtpDrafter::run(const View& hidden, std::span<const int32_t> ids, int64_t start,
                     Wanted wanted) {
  const NoAllocScope no_alloc;
  const int64_t rows = int64_t(ids.size()), last = rows - 1;
  if (!cache_.reserve(sequence_, start + rows).ok()) return false;
  const Span span{.first_row = 0,
                  .rows = rows,
                  .start = start,
                  .state_slot = Cache::state_slot(sequence_),
                  .pages = cache_.pages(sequence_)};
  memory_.upload(step_ids_.view.data, ids.data(), ids.size_bytes());
  DraftStep step{.ids = step_ids_.view.first(rows),
                 .hidden = hidden,
                 .spans = {&span, 1},
                 .outputs = {},
                 .logits = {},
                 .next_hidden = {}};
  if (wanted == Wanted::last) {
    step.outputs = {&last, 1};
    step.logits = logits_.view();
    step.peaks = logits_.peaks();
    step.next_hidden = passed_.view.first(rows);
    passed_rows_ = rows;
  }
  model_.draft(step, cache_);
  if (wanted == Wanted::last) logits_.changed();
  return true;
}

}  // namespace slip
