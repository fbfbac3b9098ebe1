#include "engine/step_batch.h"

namespace slip {

StepBatch::StepBatch(Engine& engine) : engine_(engine) {
  const auto rows = size_t(engine.model_->max_rows());
  ids_.reserve(rows);
  spans_.reserve(rows);
  outputs_.reserve(size_t(engine.logit_rows()));
  parts_.reserve(rows);
}

void StepBatch::clear() {
  ids_.clear();
  spans_.clear();
  outputs_.clear();
  parts_.clear();
}

void StepBatch::add(SequenceId sequence, std::span<const int32_t> ids, int64_t outputs,
                    Cache::Rows kind) {
  Result<Span> extended = engine_.cache_->extend(sequence, int64_t(ids.size()), kind);
  check(extended.ok(), "a step without room: ", extended.ok() ? "" : extended.failure().message);
  Span& span = spans_.emplace_back(extended.value());
  span.first_row = rows();
  parts_.push_back({span.first_row, span.rows, int64_t(outputs_.size())});
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  for (int64_t row = rows() - outputs; row < rows(); ++row) outputs_.push_back(row);
}

void StepBatch::run() {
  const NoAllocScope no_alloc;
  const auto outputs = int64_t(outputs_.size());
  engine_.memory_->upload(engine_.ids_.view.data, ids_.data(), ids_.size() * sizeof(int32_t));
  View hidden = engine_.hidden_.view();
  if (!hidden.empty()) hidden = hidden.first(rows());
  engine_.model_->forward({.ids = engine_.ids_.view.first(rows()),
                           .spans = spans_,
                           .outputs = outputs_,
                           .logits = engine_.logits_.view(outputs),
                           .hidden = hidden,
                           .peaks = engine_.logits_.peaks(outputs)},
                          *engine_.cache_);
  engine_.logits_.changed(outputs);
  if (!hidden.empty()) engine_.hidden_.changed(rows());
}

LogitRow StepBatch::logits(size_t part, int64_t output) {
  return {engine_.logits_, parts_[part].first_output + output};
}

View StepBatch::hidden(size_t part) const {
  const View hidden = engine_.hidden_.view();
  return hidden.empty() ? hidden : hidden.slice(parts_[part].first_row, parts_[part].rows);
}

std::span<const int32_t> StepBatch::ids(size_t part) const {
  return std::span(ids_).subspan(size_t(parts_[part].first_row), size_t(parts_[part].rows));
}

}  // namespace slip
