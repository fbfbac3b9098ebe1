#include "engine/session.h"

#include <algorithm>

namespace slip {

Session::Session(Engine& engine) : engine_(engine) {
  Result<SequenceId> opened = engine.cache_->open();
  check(opened.ok(), "more sessions than the cache has sequences");
  sequence_ = opened.value();
  tokens_.reserve(size_t(engine.context()));
  tentative_.reserve(size_t(engine.max_drafts()) + 1);
  output_rows_.reserve(size_t(engine.logits_.rows()));
  if (engine.max_drafts() > 0)
    drafter_ = make_drafter(*engine.model_, *engine.cache_, sequence_, *engine.memory_);
}

Session::~Session() { engine_.cache_->close(sequence_); }

void Session::clear() {
  engine_.cache_->clear(sequence_);
  tokens_.clear();
  if (drafter_) drafter_->clear();
}

LogitRow Session::choice() { return choice(int64_t(output_rows_.size()) - 1); }

Result<int64_t> Session::sync(std::span<const int32_t> ids, const Progress& progress) {
  const bool continues =
      tokens_.size() < ids.size() && std::equal(tokens_.begin(), tokens_.end(), ids.begin());
  const auto reused = continues ? int64_t(tokens_.size()) : 0;
  SLIP_TRY_STATUS(check_ids(ids.subspan(size_t(reused)), reused));  // a refusal keeps what is there
  if (!continues) clear();
  SLIP_TRY_STATUS(feed(ids.subspan(size_t(reused)), progress));
  return reused;
}

Status Session::check_ids(std::span<const int32_t> ids, int64_t before) const {
  const int64_t vocabulary = engine_.model_->info().vocabulary;
  for (const int32_t id : ids)
    if (id < 0 || id >= vocabulary)
      return error("token id ", id, " is outside the vocabulary of ", vocabulary);
  const int64_t length = before + int64_t(ids.size());
  if (length > engine_.context())
    return error("the text has ", length, " tokens, the context holds ", engine_.context(),
                 "; raise --ctx (the model takes up to ", engine_.plan_.max_context, ")");
  return {};
}

Status Session::feed(std::span<const int32_t> ids, const Progress& progress) {
  SLIP_TRY_STATUS(check_ids(ids, int64_t(tokens_.size())));
  const auto total = int64_t(ids.size());
  const int64_t chunk = engine_.model_->max_rows();
  for (int64_t done = 0; done < total; done += chunk) {
    const int64_t rows = std::min(chunk, total - done);
    const auto part = ids.subspan(size_t(done), size_t(rows));
    SLIP_TRY_STATUS(step(part, done + rows == total ? 1 : 0, Cache::Rows::certain));
    keep(part);
    if (progress && !progress(done + rows, total) && done + rows < total) return error("stopped");
  }
  wait();
  return {};
}

Status Session::feed_each(std::span<const int32_t> ids, const EachRow& each) {
  SLIP_TRY_STATUS(check_ids(ids, int64_t(tokens_.size())));
  const int64_t chunk = std::min(engine_.model_->max_rows(), engine_.logits_.rows());
  for (size_t done = 0; done < ids.size(); done += size_t(chunk)) {
    const auto part = ids.subspan(done, std::min(size_t(chunk), ids.size() - done));
    const auto position = int64_t(tokens_.size());
    SLIP_TRY_STATUS(step(part, int64_t(part.size()), Cache::Rows::certain));
    keep(part);
    for (int64_t row = 0; row < int64_t(part.size()); ++row) {
      std::span<const float> hidden;
      if (!engine_.hidden_.view().empty()) hidden = engine_.hidden_.row(row);
      each(position + row, engine_.logits_.row(row), hidden);
    }
  }
  return {};
}

Status Session::verify(std::span<const int32_t> ids) {
  check(tentative_.empty(), "verify() before the last one was accepted");
  SLIP_TRY_STATUS(check_ids(ids, int64_t(tokens_.size())));
  // A single token cannot be rejected, so nothing needs to be recorded.
  const Cache::Rows kind = ids.size() == 1 ? Cache::Rows::certain : Cache::Rows::tentative;
  SLIP_TRY_STATUS(step(ids, int64_t(ids.size()), kind));
  tentative_.assign(ids.begin(), ids.end());
  wait();
  return {};
}

void Session::wait() { (void)choice(0).peak(); }

void Session::accept(int64_t count) {
  check(count >= 1 && count <= int64_t(tentative_.size()), "accept of ", count, " tokens of ",
        tentative_.size());
  keep(std::span(tentative_).first(size_t(count)));
  tentative_.clear();
}

Status Session::step(std::span<const int32_t> ids, int64_t outputs, Cache::Rows kind) {
  const NoAllocScope no_alloc;
  const auto rows = int64_t(ids.size());
  SLIP_TRY(const Span span, engine_.cache_->extend(sequence_, rows, kind));
  engine_.memory_->upload(engine_.ids_.view.data, ids.data(), ids.size_bytes());
  output_rows_.clear();
  for (int64_t i = rows - outputs; i < rows; ++i) output_rows_.push_back(i);
  View hidden = engine_.hidden_.view();
  if (!hidden.empty()) hidden = hidden.first(rows);
  engine_.model_->forward({.ids = engine_.ids_.view.first(rows),
                           .spans = {&span, 1},
                           .outputs = output_rows_,
                           .logits = engine_.logits_.view(outputs),
                           .hidden = hidden,
                           .peaks = engine_.logits_.peaks(outputs)},
                          *engine_.cache_);
  engine_.logits_.changed(outputs);
  if (!hidden.empty()) engine_.hidden_.changed(rows);
  return {};
}

void Session::keep(std::span<const int32_t> ids) {
  const auto rows = int64_t(ids.size());
  engine_.cache_->commit(sequence_, rows);
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  if (drafter_) drafter_->follow(engine_.hidden_.view().first(rows), ids);
}

}  // namespace slip
