// Which piece of which file is fetched next, and that no two workers write the same one. Files are
// taken in their order, pieces in theirs, so that checksums can follow close behind.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "hub/partial_file.h"

namespace slip {

struct PieceJob {
  size_t file = 0, piece = 0;
  bool whole_file = false;  // the server knows no ranges: read it all, from the beginning
};

class PieceQueue {
 public:
  // `files` must outlive the queue.
  explicit PieceQueue(const std::vector<PartialFile>& files);

  // Waits for a piece that is neither there nor being fetched; nothing once the queue is closed.
  std::optional<PieceJob> take();
  // After take(), whatever came of it.
  void give_back(const PieceJob& job);

  // The server sent the whole file instead of a piece. Whether this worker is the one to use it:
  // `job` then stands for the whole file.
  bool take_whole_file(PieceJob& job);
  // Another piece of a file that is read whole; false if somebody else has it.
  bool also_take(size_t file, size_t piece);
  void give_back_also(size_t file, size_t piece);

  // A file's pieces are missing again.
  void look_again();
  void close();

 private:
  struct File {
    std::vector<bool> taken;  // by piece
    bool knows_ranges = true;
    bool being_read_whole = false;
  };

  std::optional<PieceJob> next();

  const std::vector<PartialFile>& files_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<File> states_;
  bool closed_ = false;
};

}  // namespace slip
