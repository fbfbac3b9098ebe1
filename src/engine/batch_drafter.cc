#include "engine/batch_drafter.h"

#include <algorithm>
#include <cmath>

namespace slip {
namespace {

// Hidden states kept per sequence: enough for the accepted rows of a step, and for many steps
// without drafts, which then cost nothing. What has no keys has no slots to compute.
int64_t kept_rows(const ModelInfo& info, int64_t max_rows) {
  constexpr int64_t kKept = 64;
  return info.drafter_has_keys ? std::min(kKept, max_rows) : 1;
}

}  // namespace

BatchDrafter::Bytes BatchDrafter::bytes(const ModelInfo& info, int64_t max_rows) {
  const auto row = uint64_t(2 * info.hidden + 1) * sizeof(float);  // of a pass: in, out, token
  const uint64_t logits = Logits::bytes(1, info.vocabulary);
  const uint64_t spread = uint64_t(info.vocabulary) * sizeof(float);
  return {.fixed = spread + (info.drafter_has_keys ? uint64_t(max_rows) * row : 0),
          .per_running = logits + (info.drafter_has_keys ? 0 : row),
          .per_sequence = uint64_t(kept_rows(info, max_rows) * info.hidden) * sizeof(float)};
}

BatchDrafter::BatchDrafter(Engine& engine)
    : engine_(engine),
      memory_(engine.backend_memory()),
      has_keys_(engine.model().info().drafter_has_keys) {
  const ModelInfo& info = engine.model().info();
  const int64_t sequences = engine.cache().sequences();
  const int64_t kept = kept_rows(info, engine.max_rows());
  // Without keys a pass has a row for each question and no others.
  const int64_t rows = has_keys_ ? engine.max_rows() : engine.sequences();
  const auto tokens = int64_t(engine.model().draft_tokens().size());
  states_.resize(size_t(sequences));
  for (State& state : states_) state.ids.reserve(size_t(kept));
  ids_.reserve(size_t(rows));
  spans_.reserve(size_t(engine.sequences()));
  outputs_.reserve(size_t(engine.sequences()));
  kept_ = Tensor(memory_, DType::f32, {sequences, kept, info.hidden});
  hidden_ = Tensor(memory_, DType::f32, {rows, info.hidden});
  step_ids_ = Tensor(memory_, DType::i32, {rows});
  passed_ = Tensor(memory_, DType::f32, {rows, info.hidden});
  logits_ = Logits(engine.ops(), engine.sequences(), tokens > 0 ? tokens : info.vocabulary);
  if (tokens > 0) {
    spread_ = Tensor(host_memory(), DType::f32, {info.vocabulary});
    std::fill_n(spread_.view.f32(), info.vocabulary, -INFINITY);
  }
}

void BatchDrafter::State::clear() {
  next_slot = draft_slot = 0;
  open = given_up = false;
  ids.clear();
}

void BatchDrafter::clear(SequenceId sequence) { at(sequence).clear(); }

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

View BatchDrafter::kept(SequenceId sequence, int64_t first, int64_t count) const {
  const Shape& shape = kept_.view.shape;
  return kept_.view.slice(int64_t(sequence), 1).reshaped({shape[1], shape[2]}).slice(first, count);
}

void BatchDrafter::keep(SequenceId sequence, int64_t first, const View& hidden) {
  memory_.copy(kept(sequence, first, hidden.shape[0]).data, hidden.data, hidden.bytes());
}

bool BatchDrafter::can_draft(SequenceId sequence) const { return states_[size_t(sequence)].open; }

void BatchDrafter::follow(SequenceId sequence, const View& hidden, std::span<const int32_t> ids,
                          KeepUp keep_up) {
  State& state = at(sequence);
  if (state.given_up) return;
  const auto rows = int64_t(ids.size());
  const View last = hidden.slice(rows - 1, 1);
  if (!has_keys_) {
    keep(sequence, 0, last);
    state.open = true;
    return;
  }
  // The first token completes the open slot; each of the others completes the slot before it.
  const std::span<const int32_t> completing = ids.subspan(state.open ? 0 : 1);
  if (state.ids.size() + completing.size() < size_t(kept_.view.shape[1])) {
    keep(sequence, outstanding(sequence), hidden);
    state.ids.insert(state.ids.end(), completing.begin(), completing.end());
    state.open = true;
    return;
  }
  if (keep_up == KeepUp::if_free) {
    state.clear();
    state.given_up = true;
    return;
  }
  // Room for these slots is there: their positions are part of the sequence.
  if (const auto waiting = int64_t(state.ids.size());
      outstanding(sequence) + rows > engine_.max_rows()) {
    add_outstanding(sequence);
    run(Wanted::nothing, 0);
    if (state.open && waiting > 0) keep(sequence, 0, kept(sequence, waiting, 1));
    state.next_slot += waiting;
    state.ids.clear();
  }
  put(kept(sequence, 0, outstanding(sequence)));
  put(hidden.first(rows - 1));
  put(state.ids);
  put(completing);
  end_span(sequence, state.next_slot);
  run(Wanted::nothing, 0);
  state.next_slot += int64_t(state.ids.size() + completing.size());
  state.ids.clear();
  keep(sequence, 0, last);
  state.open = true;
}

void BatchDrafter::put(const View& hidden) {
  const int64_t rows = hidden.shape[0];
  if (rows == 0) return;
  memory_.copy(hidden_.view.slice(rows_, rows).data, hidden.data, hidden.bytes());
  rows_ += rows;
}

void BatchDrafter::put(std::span<const int32_t> ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

void BatchDrafter::end_span(SequenceId sequence, int64_t start) {
  check(int64_t(ids_.size()) == rows_, "every slot has a hidden state and a token");
  const int64_t first = spans_.empty() ? 0 : spans_.back().first_row + spans_.back().rows;
  spans_.push_back({.first_row = first,
                    .rows = rows_ - first,
                    .start = start,
                    .state_slot = Cache::state_slot(sequence),
                    .pages = engine_.cache().pages(sequence)});
}

void BatchDrafter::add_outstanding(SequenceId sequence) {
  const State& state = at(sequence);
  if (state.ids.empty()) return;
  put(kept(sequence, 0, int64_t(state.ids.size())));
  put(state.ids);
  end_span(sequence, state.next_slot);
}

void BatchDrafter::first_round(std::span<const Question> questions) {
  // Rows with logits lie side by side, so only the first sequence may bring others along.
  const auto brings_others = [&](const Question& question) {
    const auto rows = int64_t(at(question.sequence).ids.size() + questions.size());
    return &question == questions.data() && rows <= engine_.max_rows();
  };
  for (const Question& question : questions) {
    if (brings_others(question)) continue;
    const auto waiting = int64_t(at(question.sequence).ids.size());
    if (rows_ + waiting > engine_.max_rows()) run(Wanted::nothing, 0);
    add_outstanding(question.sequence);
  }
  run(Wanted::nothing, 0);
  for (const Question& question : questions) {
    State& state = at(question.sequence);
    check(state.open, "a draft needs a sequence to follow");
    if (!has_keys_) state.next_slot = engine_.cache().length(question.sequence) - 1;
    const auto waiting = int64_t(state.ids.size());
    state.draft_slot = state.next_slot + waiting;
    if (brings_others(question)) {
      put(kept(question.sequence, 0, waiting + 1));
      put(state.ids);
      put({&question.id, 1});
      end_span(question.sequence, state.next_slot);
    } else {
      put(kept(question.sequence, waiting, 1));
      put({&question.id, 1});
      end_span(question.sequence, state.draft_slot);
    }
    state.next_slot = state.draft_slot + 1;
    state.ids.clear();
    state.open = false;  // the question's token is certain, so its slot is settled
  }
  run(Wanted::last_rows, int64_t(questions.size()));
}

void BatchDrafter::next_round(std::span<const Question> questions) {
  for (const Question& question : questions) {
    put(passed_.view.slice(first_drafted_ + question.before, 1));
    put({&question.id, 1});
    int64_t& slot = at(question.sequence).draft_slot;
    if (has_keys_) ++slot;
    end_span(question.sequence, slot);
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
  engine_.model().draft(step, engine_.cache());
  logits_.changed(outputs);
  drop_pass();
}

void BatchDrafter::drop_pass() {
  rows_ = 0;
  ids_.clear();
  spans_.clear();
}

LogitRow BatchDrafter::logits(int64_t question) {
  return {logits_, question, engine_.model().draft_tokens(), spread_.view};
}

}  // namespace slip
