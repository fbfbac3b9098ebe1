#include "engine/mtp_drafter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace slip {
namespace {

Tensor f32(const Shape& shape) { return Tensor(Device::cpu, DType::f32, shape); }

}  // namespace

MtpDrafter::MtpDrafter(Model& model, Cache& cache, SequenceId sequence)
    : model_(model), cache_(cache), sequence_(sequence) {
  const int64_t rows = model.max_rows(), hidden = model.info().hidden;
  const auto tokens = int64_t(model.draft_tokens().size());
  hidden_ = f32({rows, hidden});
  ids_ = Tensor(Device::cpu, DType::i32, {rows});
  passed_ = f32({rows, hidden});
  draft_id_ = Tensor(Device::cpu, DType::i32, {1});
  logits_ = f32({1, tokens > 0 ? tokens : model.info().vocabulary});
  if (tokens > 0) {
    spread_ = f32({1, model.info().vocabulary});
    std::fill_n(spread_.view.f32(), spread_.view.count(), -INFINITY);
  }
}

int64_t MtpDrafter::values(const ModelInfo& info, int64_t max_rows) {
  return max_rows * (2 * info.hidden + 1) + 2 * info.vocabulary;
}

void MtpDrafter::clear() {
  next_slot_ = complete_ = 0;
  open_ = false;
  drafted_after_ = -1;
}

void MtpDrafter::follow(const View& hidden, std::span<const int32_t> ids) {
  const int64_t width = model_.info().hidden;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (open_ && ids[i] == drafted_after_) {
      ++next_slot_;  // its keys are in the cache since draft_after()
    } else if (open_) {
      ids_.view.i32()[complete_++] = ids[i];
    }
    drafted_after_ = -1;
    if (complete_ == model_.max_rows()) settle(complete_);
    std::memcpy(hidden_.view.f32() + complete_ * width, hidden.f32() + int64_t(i) * width,
                size_t(width) * sizeof(float));
    open_ = true;
  }
}

void MtpDrafter::settle(int64_t rows) {
  // Room for these slots is there: their positions are part of the sequence.
  check(run(hidden_.view.first(rows), ids_.view.first(rows), next_slot_, Logits::none),
        "no room for settled slots");
  next_slot_ += rows;
  complete_ = 0;
}

std::span<float> MtpDrafter::draft_after(int32_t next) {
  check(open_, "a draft needs a sequence to follow");
  const int64_t rows = complete_ + 1, width = model_.info().hidden;
  ids_.view.i32()[complete_] = next;
  if (!run(hidden_.view.first(rows), ids_.view.first(rows), next_slot_, Logits::last)) return {};
  // All but the open slot are settled; the open one is too, if `next` is what comes.
  std::memmove(hidden_.view.f32(), hidden_.view.f32() + complete_ * width,
               size_t(width) * sizeof(float));
  next_slot_ += complete_;
  complete_ = 0;
  drafted_after_ = next;
  draft_slot_ = next_slot_;
  return logits();
}

std::span<float> MtpDrafter::draft_on(int32_t draft) {
  draft_id_.view.i32()[0] = draft;
  if (!run(passed_.view.slice(passed_rows_ - 1, 1), draft_id_.view, draft_slot_ + 1, Logits::last))
    return {};
  ++draft_slot_;
  return logits();
}

bool MtpDrafter::run(const View& hidden, const View& ids, int64_t start, Logits wanted) {
  const NoAllocScope no_alloc;
  const int64_t rows = ids.shape[0], last = rows - 1;
  if (!cache_.reserve(sequence_, start + rows).ok()) return false;
  const Span span{.first_row = 0,
                  .rows = rows,
                  .start = start,
                  .state_slot = Cache::state_slot(sequence_),
                  .pages = cache_.pages(sequence_)};
  DraftStep step{.ids = ids,
                 .hidden = hidden,
                 .spans = {&span, 1},
                 .outputs = {},
                 .logits = {},
                 .next_hidden = {}};
  if (wanted == Logits::last) {
    step.outputs = {&last, 1};
    step.logits = logits_.view;
    step.next_hidden = passed_.view.first(rows);
    passed_rows_ = rows;
  }
  model_.draft(step, cache_);
  return true;
}

std::span<float> MtpDrafter::logits() {
  const std::span<const int32_t> tokens = model_.draft_tokens();
  if (tokens.empty()) return {logits_.view.f32(), size_t(logits_.view.count())};
  for (size_t i = 0; i < tokens.size(); ++i) spread_.view.f32()[tokens[i]] = logits_.view.f32()[i];
  return {spread_.view.f32(), size_t(spread_.view.count())};
}

}  // namespace slip
