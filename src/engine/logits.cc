#include "engine/logits.h"

#include <cstring>

namespace slip {

Logits::Logits(Memory& memory, int64_t rows, int64_t width)
    : values_(memory, rows, width), peaks_(memory, rows, 3, HostRows::Written::here) {}

View Logits::peaks(int64_t rows) const {
  View view = peaks_.view().first(rows);
  view.dtype = DType::i32;
  return view;
}

void Logits::changed(int64_t rows) {
  values_.changed(rows);
  peaks_.changed(rows);
}

Peak Logits::peak(int64_t index) {
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

Peak LogitRow::peak() const {
  Peak peak = logits.peak(index);
  if (!tokens.empty()) peak.id = tokens[size_t(peak.id)];
  return peak;
}

}  // namespace slip
