#include "engine/draft_passes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace slip {
namespace {

// Hidden states kept per sequence: enough for the accepted rows of a step, and for many steps
// without drafts, which then cost nothing. What has no keys has no slots to compute.
int64_t kept_rows(const ModelInfo& info, int64_t max_rows) {
  constexpr int64_t kKept = 64;
  return info.drafter == DrafterKeys::own ? std::min(kKept, max_rows) : 1;
}

}  // namespace

DraftPasses::Bytes DraftPasses::bytes(const ModelInfo& info, int64_t max_rows, int64_t max_drafts) {
  const bool has_keys = info.drafter == DrafterKeys::own;
  const auto row = uint64_t(info.hidden + 1) * sizeof(float);  // of a pass: hidden state and token
  const uint64_t handed_on = row + Logits::bytes(1, info.vocabulary, max_drafts);
  const uint64_t spread = uint64_t(info.vocabulary) * sizeof(float);
  return {.fixed = spread + (has_keys ? uint64_t(max_rows) * row : 0),
          .per_running = handed_on + (has_keys ? 0 : row),
          .per_sequence = uint64_t(kept_rows(info, max_rows) * info.hidden) * sizeof(float)};
}

DraftPasses::DraftPasses(Engine& engine)
    : engine_(engine),
      drafter_(*engine.model().drafter()),
      memory_(engine.backend_memory()),
      has_keys_(drafter_.keys() == DrafterKeys::own) {
  const ModelInfo& info = engine.model().info();
  const int64_t sequences = engine.cache().sequences();
  const int64_t kept = kept_rows(info, engine.max_rows());
  // Without keys a pass has a row for each question and no others.
  const int64_t rows = has_keys_ ? engine.max_rows() : engine.sequences();
  const auto tokens = int64_t(drafter_.tokens().size());
  states_.resize(size_t(sequences));
  for (State& state : states_) state.ids.reserve(size_t(kept));
  const int64_t running = engine.sequences(), rounds = engine.max_drafts();
  ids_.reserve(size_t(rows));
  spans_.reserve(size_t(running * rounds));
  outputs_.reserve(size_t(running));
  every_row_.resize(size_t(running));
  std::iota(every_row_.begin(), every_row_.end(), int64_t(0));
  steps_.reserve(size_t(rounds));
  kept_ = Tensor(memory_, DType::f32, {sequences, kept, info.hidden});
  hidden_ = Tensor(memory_, DType::f32, {rows, info.hidden});
  step_ids_ = Tensor(memory_, DType::i32, {rows});
  passed_ = Tensor(memory_, DType::f32, {running, info.hidden});
  passed_ids_ = Tensor(memory_, DType::i32, {running});
  logits_ = Logits(engine.ops(), running, tokens > 0 ? tokens : info.vocabulary, rounds);
  if (tokens > 0) {
    spread_ = Tensor(host_memory(), DType::f32, {info.vocabulary});
    std::fill_n(spread_.view.f32(), info.vocabulary, -INFINITY);
  }
}

void DraftPasses::State::clear() {
  next_slot = draft_slot = 0;
  open = given_up = false;
  ids.clear();
}

void DraftPasses::clear(SequenceId sequence) { at(sequence).clear(); }

void DraftPasses::copy(SequenceId from, SequenceId to) {
  at(to) = at(from);
  const View rows = kept_.view.slice(int64_t(from), 1);
  memory_.copy(kept_.view.slice(int64_t(to), 1).data, rows.data, rows.bytes());
}

int64_t DraftPasses::outstanding(SequenceId sequence) const {
  const State& state = states_[size_t(sequence)];
  if (!has_keys_) return 0;
  return int64_t(state.ids.size()) + (state.open ? 1 : 0);
}

View DraftPasses::kept(SequenceId sequence, int64_t first, int64_t count) const {
  const Shape& shape = kept_.view.shape;
  return kept_.view.slice(int64_t(sequence), 1).reshaped({shape[1], shape[2]}).slice(first, count);
}

void DraftPasses::keep(SequenceId sequence, int64_t first, const View& hidden) {
  memory_.copy(kept(sequence, first, hidden.shape[0]).data, hidden.data, hidden.bytes());
}

bool DraftPasses::can_draft(SequenceId sequence) const { return states_[size_t(sequence)].open; }

void DraftPasses::follow(SequenceId sequence, const View& hidden, std::span<const int32_t> ids,
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
    run();
    if (state.open && waiting > 0) keep(sequence, 0, kept(sequence, waiting, 1));
    state.next_slot += waiting;
    state.ids.clear();
  }
  put(kept(sequence, 0, outstanding(sequence)));
  put(hidden.first(rows - 1));
  put(state.ids);
  put(completing);
  end_span(sequence, state.next_slot);
  run();
  state.next_slot += int64_t(state.ids.size() + completing.size());
  state.ids.clear();
  keep(sequence, 0, last);
  state.open = true;
}

void DraftPasses::put(const View& hidden) {
  const int64_t rows = hidden.shape[0];
  if (rows == 0) return;
  memory_.copy(hidden_.view.slice(rows_, rows).data, hidden.data, hidden.bytes());
  rows_ += rows;
}

void DraftPasses::put(std::span<const int32_t> ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

void DraftPasses::end_span(SequenceId sequence, int64_t start) {
  check(int64_t(ids_.size()) == rows_, "every slot has a hidden state and a token");
  const int64_t first = spans_.empty() ? 0 : spans_.back().first_row + spans_.back().rows;
  spans_.push_back(span_of(sequence, start, first, rows_ - first));
}

Span DraftPasses::span_of(SequenceId sequence, int64_t start, int64_t first_row, int64_t rows) {
  return {.first_row = first_row,
          .rows = rows,
          .start = start,
          .state_slot = Cache::state_slot(sequence),
          .pages = engine_.cache().pages(sequence)};
}

void DraftPasses::add_outstanding(SequenceId sequence) {
  const State& state = at(sequence);
  if (state.ids.empty()) return;
  put(kept(sequence, 0, int64_t(state.ids.size())));
  put(state.ids);
  end_span(sequence, state.next_slot);
}

void DraftPasses::first_rounds(std::span<const Question> questions, int64_t rounds) {
  // Rows with logits lie side by side, so only the first sequence may bring others along.
  const auto brings_others = [&](const Question& question) {
    const auto rows = int64_t(at(question.sequence).ids.size() + questions.size());
    return &question == questions.data() && rows <= engine_.max_rows();
  };
  for (const Question& question : questions) {
    if (brings_others(question)) continue;
    const auto waiting = int64_t(at(question.sequence).ids.size());
    if (rows_ + waiting > engine_.max_rows()) run();
    add_outstanding(question.sequence);
  }
  run();
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
  run(questions, rounds);
}

void DraftPasses::next_round(std::span<const Question> questions) {
  for (const Question& question : questions) {
    put(passed_.view.slice(question.before, 1));
    put({&question.id, 1});
    end_span(question.sequence, next_slot(question.sequence));
  }
  run(questions);
}

int64_t DraftPasses::next_slot(SequenceId sequence) {
  State& state = at(sequence);
  if (has_keys_) ++state.draft_slot;
  return state.draft_slot;
}

void DraftPasses::run(std::span<const Question> questions, int64_t rounds) {
  const NoAllocScope no_alloc;
  if (rows_ == 0) return drop_pass();
  memory_.upload(step_ids_.view.data, ids_.data(), ids_.size() * sizeof(int32_t));
  DraftStep step{.ids = step_ids_.view.first(rows_),
                 .hidden = hidden_.view.first(rows_),
                 .spans = spans_,
                 .outputs = {},
                 .logits = {},
                 .next_hidden = {}};
  answered_ = int64_t(questions.size());
  if (!questions.empty()) {
    outputs_.clear();
    for (int64_t row = rows_ - answered_; row < rows_; ++row) outputs_.push_back(row);
    step.outputs = outputs_;
    step.logits = logits_.view(answered_);
    step.peaks = logits_.peaks(answered_);
    step.next_hidden = passed_.view.first(answered_);
    step.next_ids = passed_ids_.view.first(answered_);
  }
  steps_.assign(1, step);
  add_rounds(questions, rounds);
  drafter_.draft(steps_, engine_.cache());
  logits_.changed(answered_, rounds);
  drop_pass();
}

void DraftPasses::add_rounds(std::span<const Question> questions, int64_t rounds) {
  for (int64_t round = 1; round < rounds; ++round) {
    const size_t first_span = spans_.size();
    for (const Question& question : questions)
      spans_.push_back(span_of(question.sequence, next_slot(question.sequence),
                               int64_t(spans_.size() - first_span), 1));
    DraftStep step = steps_.front();
    step.ids = step.next_ids;
    step.hidden = step.next_hidden;
    step.spans = std::span(spans_).subspan(first_span);
    step.outputs = std::span(every_row_).first(questions.size());
    step.peaks = logits_.peaks(answered_, round);
    steps_.push_back(step);
  }
}

void DraftPasses::drop_pass() {
  rows_ = 0;
  ids_.clear();
  spans_.clear();
}

Peak DraftPasses::peak(int64_t round, int64_t question) {
  return logits_.peak(round * answered_ + question);
}

LogitRow DraftPasses::logits(int64_t question) {
  return {logits_, question, drafter_.tokens(), spread_.view};
}

}  // namespace slip
