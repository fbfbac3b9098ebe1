#include "engine/logits.h"

#include <cstring>

namespace slip {

Logits::Logits(Ops& ops, int64_t rows, int64_t width, int64_t rounds)
    : ops_(&ops),
      values_(ops.memory(), rows, width),
      peaks_(ops.memory(), rows * rounds, 3, HostRows::Written::here) {
  if (!ops.memory().on_host())
    candidates_ = HostRows(ops.memory(), rows, 2 * kCandidates, HostRows::Written::here);
}

View Logits::peaks(int64_t rows, int64_t round) const {
  View view = peaks_.view().slice(round * rows, rows);
  view.dtype = DType::i32;
  return view;
}

void Logits::changed(int64_t rows, int64_t rounds) {
  values_.changed(rows);
  peaks_.changed(rows * rounds);
  unsearched_ = rows;
}

Peak Logits::peak(int64_t index) {
  Peak peak;
  std::memcpy(&peak, peaks_.row(index).data(), sizeof(peak));
  return peak;
}

std::optional<Candidates> Logits::candidates(int64_t index) {
  if (candidates_.view().empty()) return std::nullopt;
  if (unsearched_ > 0) {
    View out = candidates_.view().first(unsearched_).reshaped({unsearched_, kCandidates, 2});
    out.dtype = DType::i32;
    ops_->candidates({.x = view(unsearched_), .out = out});
    candidates_.changed(unsearched_);
    unsearched_ = 0;
  }
  Candidates found;
  std::memcpy(found.data(), candidates_.row(index).data(), sizeof(found));
  return found;
}

std::span<float> LogitRow::values() const {
  const std::span<float> row = logits.row(index);
  if (tokens.empty()) return row;
  const std::span<float> all(all_tokens.f32(), size_t(all_tokens.count()));
  for (size_t i = 0; i < tokens.size(); ++i) all[size_t(tokens[i])] = row[i];
  return all;
}

Peak LogitRow::peak() const { return logits.peak(index); }

std::optional<Candidates> LogitRow::candidates() const {
  std::optional<Candidates> found = logits.candidates(index);
  if (!found || tokens.empty()) return found;
  for (Candidate& candidate : *found)
    if (candidate.id >= 0) candidate.id = tokens[size_t(candidate.id)];
  return found;
}

}  // namespace slip
