#include "engine/logits.h"

#include <cstring>

namespace slip {

Logits::Logits(Memory& memory, int64_t rows, int64_t width, int64_t rounds)
    : values_(memory, rows, width), peaks_(memory, rows * rounds, 3, HostRows::Written::here) {}

View Logits::peaks(int64_t rows, int64_t round) const {
  View view = peaks_.view().slice(round * rows, rows);
  view.dtype = DType::i32;
  return view;
}

void Logits::changed(int64_t rows, int64_t rounds) {
  values_.changed(rows);
  peaks_.changed(rows * rounds);
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

Peak LogitRow::peak() const { return logits.peak(index); }

}  // namespace slip
