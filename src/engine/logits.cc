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

}  // namespace slip
