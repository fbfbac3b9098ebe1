#include "hub/piece_queue.h"

namespace slip {

PieceQueue::PieceQueue(const std::vector<PartialFile>& files)
    : files_(files), states_(files.size()) {
  for (size_t i = 0; i < files.size(); ++i) states_[i].taken.resize(files[i].pieces());
}

std::optional<PieceJob> PieceQueue::next() {
  for (size_t i = 0; i < files_.size(); ++i) {
    File& state = states_[i];
    if (state.being_read_whole) continue;
    for (size_t piece = 0; piece < state.taken.size(); ++piece) {
      if (state.taken[piece] || files_[i].is_done(piece)) continue;
      state.taken[piece] = true;
      state.being_read_whole = !state.knows_ranges;
      return PieceJob{i, piece, !state.knows_ranges};
    }
  }
  return std::nullopt;
}

std::optional<PieceJob> PieceQueue::take() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (closed_) return std::nullopt;
    if (std::optional<PieceJob> job = next()) return job;
    changed_.wait(lock);
  }
}

void PieceQueue::give_back(const PieceJob& job) {
  const std::scoped_lock lock(mutex_);
  states_[job.file].taken[job.piece] = false;
  if (job.whole_file) states_[job.file].being_read_whole = false;
  changed_.notify_all();
}

bool PieceQueue::take_whole_file(PieceJob& job) {
  const std::scoped_lock lock(mutex_);
  File& state = states_[job.file];
  if (job.whole_file) return true;
  state.knows_ranges = false;
  if (state.being_read_whole) return false;
  state.being_read_whole = job.whole_file = true;
  return true;
}

bool PieceQueue::also_take(size_t file, size_t piece) {
  const std::scoped_lock lock(mutex_);
  if (states_[file].taken[piece]) return false;
  states_[file].taken[piece] = true;
  return true;
}

void PieceQueue::give_back_also(size_t file, size_t piece) {
  const std::scoped_lock lock(mutex_);
  states_[file].taken[piece] = false;
}

void PieceQueue::look_again() {
  const std::scoped_lock lock(mutex_);  // so that nobody is between looking and waiting
  changed_.notify_all();
}

void PieceQueue::close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace slip
