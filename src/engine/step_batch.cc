#include "engine/step_batch.h"

namespace slip {

StepBatch::StepBatch(Engine& engine) : engine_(engine), buffers_(engine.step_buffers()) {
  const auto rows = size_t(engine.max_rows());
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
  Result<Span> extended = engine_.cache().extend(sequence, int64_t(ids.size()), kind);
  check(extended.ok(), "a step without room: ", extended.ok() ? "" : extended.failure().message);
  Span& span = spans_.emplace_back(extended.value());
  span.first_row = rows();
  parts_.push_back({span.first_row, span.rows, int64_t(outputs_.size())});
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  for (int64_t row = rows() - outputs; row < rows(); ++row) outputs_.push_back(row);
}

void StepBatch::run() {
  const NoAllocScope no_alloc;
  engine_.backend_memory().upload(buffers_.ids.view.data, ids_.data(),
                                  ids_.size() * sizeof(int32_t));
  View hidden = buffers_.hidden.view();
  if (!hidden.empty()) hidden = hidden.first(rows());
  engine_.model().forward({.ids = buffers_.ids.view.first(rows()),
                           .host_ids = ids_,
                           .spans = spans_,
                           .outputs = outputs_,
                           .logits = buffers_.logits.view(outputs()),
                           .hidden = hidden,
                           .peaks = buffers_.logits.peaks(outputs())},
                          engine_.cache());
  buffers_.logits.changed(outputs());
  if (!hidden.empty()) buffers_.hidden.changed(rows());
}

LogitRow StepBatch::logits(size_t part, int64_t output) {
  return {buffers_.logits, parts_[part].first_output + output};
}

View StepBatch::hidden(size_t part) const {
  const View hidden = buffers_.hidden.view();
  return hidden.empty() ? hidden : hidden.slice(parts_[part].first_row, parts_[part].rows);
}

std::span<const float> StepBatch::hidden_row(size_t part, int64_t row) {
  if (buffers_.hidden.view().empty()) return {};
  return buffers_.hidden.row(parts_[part].first_row + row);
}

std::span<const int32_t> StepBatch::ids(size_t part) const {
  return std::span(ids_).subspan(size_t(parts_[part].first_row), size_t(parts_[part].rows));
}

}  // namespace slip
