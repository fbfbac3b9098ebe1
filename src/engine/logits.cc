#include "engine/logits.h"

#include <cstring>

namespace slip {

Logits::Logits(Memory& memory, int64_t rows, int64_t width) : values_(memory, rows, width) {
  if (!memory.on_host()) peaks_ = HostRows(memory, rows, 3, HostRows::Written::here);
}

View Logits::peaks(int64_t rows) const {
  if (peaks_.view().empty()) return {};
  View view = peaks_.view().first(rows);
  view.dtype = DType::i32;
  return view;
}

void Logits::changed(int64_t rows) {
  values_.changed(rows);
  if (!peaks_.view().empty()) peaks_.changed(rows);
}

std::optional<Peak> Logits::peak(int64_t index) {
  if (peaks_.view().empty()) return std::nullopt;
  Peak peak;
  std::memcpy(&peak, peaks_.row(index).data(), sizeof(peak));
  return peak;
}

std::span<float> LogitRow::values() const {
  const std::span<float> row = logits.row(index);
  if (tokens.empty()) return row;
  const std::span<float> all = all_tokens->row(0);
  for (size_t i = 0; i < tokens.size(); ++i) all[size_t(tokens[i])] = row[i];
  return all;
}

std::optional<Peak> LogitRow::peak() const {
  std::optional<Peak> peak = logits.peak(index);
  if (peak && !tokens.empty()) peak->id = tokens[size_t(peak->id)];
  return peak;
}

}  // namespace slip
