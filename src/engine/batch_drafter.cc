#include "engine/batch_drafter.h"

#include <algorithm>
#include <cmath>

namespace slip {
namespace {

// Hidden states kept per sequence: enough for the accepted rows of a step, and for many steps
// without drafts, which then cost nothing.
constexpr int64_t kKept = 64;

}  // namespace

uint64_t BatchDrafter::bytes_per_sequence(const ModelInfo& info) {
  return uint64_t(kKept * info.hidden) * sizeof(float);
}

BatchDrafter::BatchDrafter(Engine& engine)
    : engine_(engine), memory_(*engine.memory_), has_keys_(engine.model_->info().drafter_has_keys) {
  const int64_t rows = engine.model_->max_rows(), hidden = engine.model_->info().hidden;
  const int64_t vocabulary = engine.model_->info().vocabulary;
  const auto tokens = int64_t(engine.model_->draft_tokens().size());
  states_.resize(size_t(engine.cache_->sequences()));
  kept_ = Tensor(memory_, DType::f32, {engine.cache_->sequences(), kKept, hidden});
  hidden_ = Tensor(memory_, DType::f32, {rows, hidden});
  step_ids_ = Tensor(memory_, DType::i32, {rows});
  passed_ = Tensor(memory_, DType::f32, {rows, hidden});
  logits_ = Logits(memory_, engine.sequences(), tokens > 0 ? tokens : vocabulary);
  if (tokens > 0) {
    spread_ = Logits(host_memory(), 1, vocabulary);
    std::ranges::fill(spread_.row(0), -INFINITY);
  }
}

void BatchDrafter::clear(SequenceId sequence) { at(sequence) = {}; }

void BatchDrafter::copy(SequenceId from, SequenceId to) {
  at(to) = at(from);
  const View rows = kept_.view.slice(int64_t(from), 1);
  memory_.copy(kept_.view.slice(int64_t(to), 1).data, rows.data, rows.bytes());
}

int64_t BatchDrafter::outstanding(SequenceId sequence) const {
  const State& state = states_[size_t(sequence)];
  if (!has_keys_) return 0;
  return int64_t(state.ids.size()) + (state.open ? 1 : 0);
}

View BatchDrafter::kept(SequenceId sequence, int64_t row) const {
  const int64_t hidden = kept_.view.shape[2];
  return kept_.view.slice(int64_t(sequence), 1).reshaped({kKept, hidden}).slice(row, 1);
}

bool BatchDrafter::can_draft(SequenceId sequence) const { return states_[size_t(sequence)].open; }

void BatchDrafter::follow(SequenceId sequence, const View& hidden, std::span<const int32_t> ids,
                          KeepUp keep_up) {
  State& state = at(sequence);
  if (state.given_up) return;
  const auto rows = int64_t(ids.size());
  if (!has_keys_) {
    const View state_of_last = hidden.slice(rows - 1, 1);
    memory_.copy(kept(sequence, 0).data, state_of_last.data, state_of_last.bytes());
    state.open = true;
    return;
  }
  // The first token completes the open slot; each of the others completes the slot before it.
  const std::span<const int32_t> completing = ids.subspan(state.open ? 0 : 1);
  const auto waiting = int64_t(state.ids.size());
  if (waiting + int64_t(completing.size()) < kKept) {
    const int64_t first = outstanding(sequence);
    for (int64_t i = 0; i < rows; ++i)
      memory_.copy(kept(sequence, first + i).data, hidden.slice(i, 1).data,
                   hidden.slice(i, 1).bytes());
    state.ids.insert(state.ids.end(), completing.begin(), completing.end());
    state.open = true;
    return;
  }
  if (keep_up == KeepUp::if_free) {
    state = {};
    state.given_up = true;
    return;
  }
  // Room for these slots is there: their positions are part of the sequence.
  if (outstanding(sequence) + rows > engine_.model_->max_rows()) {
    add_outstanding(sequence);
    run(Wanted::nothing, 0);
    if (state.open && waiting > 0)
      memory_.copy(kept(sequence, 0).data, kept(sequence, waiting).data, kept(sequence, 0).bytes());
    state.next_slot += waiting;
    state.ids.clear();
  }
  state.ids.insert(state.ids.end(), completing.begin(), completing.end());
  const int64_t before = outstanding(sequence) - int64_t(completing.size());
  for (int64_t i = 0; i < before; ++i) put(kept(sequence, i));
  const View most = hidden.first(rows - 1);
  if (rows > 1) put(most);
  add_span(sequence, state.next_slot, state.ids);
  run(Wanted::nothing, 0);
  state.next_slot += int64_t(state.ids.size());
  state.ids.clear();
  const View last = hidden.slice(rows - 1, 1);
  memory_.copy(kept(sequence, 0).data, last.data, last.bytes());
  state.open = true;
}

void BatchDrafter::put(const View& rows) {
  memory_.copy(hidden_.view.slice(rows_, rows.shape[0]).data, rows.data, rows.bytes());
  rows_ += rows.shape[0];
}

void BatchDrafter::add_span(SequenceId sequence, int64_t start, std::span<const int32_t> ids) {
  const auto first = int64_t(ids_.size());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  check(int64_t(ids_.size()) == rows_, "every slot has a hidden state and a token");
  spans_.push_back({.first_row = first,
                    .rows = int64_t(ids.size()),
                    .start = start,
                    .state_slot = Cache::state_slot(sequence),
                    .pages = engine_.cache_->pages(sequence)});
}

void BatchDrafter::add_outstanding(SequenceId sequence) {
  const State& state = at(sequence);
  if (state.ids.empty()) return;
  for (size_t i = 0; i < state.ids.size(); ++i) put(kept(sequence, int64_t(i)));
  add_span(sequence, state.next_slot, state.ids);
}

void BatchDrafter::first_round(std::span<const Question> questions) {
  // Rows with logits lie side by side, so only the first sequence may bring others along.
  for (const Question& question : questions.subspan(1)) {
    State& state = at(question.sequence);
    if (rows_ + int64_t(state.ids.size()) > engine_.model_->max_rows()) run(Wanted::nothing, 0);
    add_outstanding(question.sequence);
  }
  run(Wanted::nothing, 0);
  for (const Question& question : questions) {
    State& state = at(question.sequence);
    check(state.open, "a draft needs a sequence to follow");
    if (!has_keys_) state.next_slot = engine_.cache_->length(question.sequence) - 1;
    const auto waiting = int64_t(state.ids.size());
    if (&question == questions.data()) {
      for (int64_t i = 0; i < waiting; ++i) put(kept(question.sequence, i));
    } else {
      state.next_slot += waiting;
      state.ids.clear();
    }
    put(kept(question.sequence, waiting));
    state.ids.push_back(question.id);
    add_span(question.sequence, state.next_slot, state.ids);
    state.next_slot += int64_t(state.ids.size());
    state.draft_slot = state.next_slot - 1;
    state.ids.clear();
    state.open = false;  // the question's token is certain, so its slot is settled
  }
  run(Wanted::last_rows, int64_t(questions.size()));
}

void BatchDrafter::next_round(std::span<const Question> questions) {
  for (const Question& question : questions) {
    put(passed_.view.slice(first_drafted_ + question.before, 1));
    int64_t& slot = at(question.sequence).draft_slot;
    if (has_keys_) ++slot;
    add_span(question.sequence, slot, {&question.id, 1});
  }
  run(Wanted::last_rows, int64_t(questions.size()));
}

void BatchDrafter::run(Wanted wanted, int64_t outputs) {
  const NoAllocScope no_alloc;
  if (rows_ == 0) return drop_pass();
  memory_.upload(step_ids_.view.data, ids_.data(), ids_.size() * sizeof(int32_t));
  DraftStep step{.ids = step_ids_.view.first(rows_),
                 .hidden = hidden_.view.first(rows_),
                 .spans = spans_,
                 .outputs = {},
                 .logits = {},
                 .next_hidden = {}};
  if (wanted == Wanted::last_rows) {
    first_drafted_ = rows_ - outputs;
    outputs_.clear();
    for (int64_t row = first_drafted_; row < rows_; ++row) outputs_.push_back(row);
    step.outputs = outputs_;
    step.logits = logits_.view(outputs);
    step.peaks = logits_.peaks(outputs);
    step.next_hidden = passed_.view.first(rows_);
  }
  engine_.model_->draft(step, *engine_.cache_);
  logits_.changed(outputs);
  drop_pass();
}

void BatchDrafter::drop_pass() {
  rows_ = 0;
  ids_.clear();
  spans_.clear();
}

LogitRow BatchDrafter::logits(int64_t question) {
  const std::span<const int32_t> tokens = engine_.model_->draft_tokens();
  if (tokens.empty()) return {logits_, question};
  const std::span<const float> few = logits_.row(question);
  const std::span<float> all = spread_.row(0);
  for (size_t i = 0; i < tokens.size(); ++i) all[size_t(tokens[i])] = few[i];
  return {spread_, 0};
}

}  // namespace slip
