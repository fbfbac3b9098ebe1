// One request for one piece of a file, from the hub into the partial file.
#pragma once

#include <vector>

#include "hub/hub_client.h"
#include "hub/piece_queue.h"
#include "hub/repo_listing.h"

namespace slip {

struct DownloadItem {
  RemoteFile remote;
  std::string address;  // below the hub's endpoint
  std::filesystem::path target;
};

class PieceFetcher {
 public:
  // All of them must outlive it. One per thread.
  PieceFetcher(const RepoId& repo, HubClient& hub, PieceQueue& queue)
      : repo_(repo), hub_(hub), queue_(queue), buffer_(kBufferBytes) {}

  struct Outcome {
    uint64_t bytes = 0;                 // that are new
    std::optional<HubTrouble> trouble;  // nothing: the piece is there, or somebody else's now
  };
  Outcome fetch(const DownloadItem& item, PartialFile& file, PieceJob& job);

 private:
  // Large enough that system calls do not count, small enough that little is lost with us.
  static constexpr size_t kBufferBytes = 512 << 10;

  void receive_piece(PartialFile& file, const PieceJob& job, uint64_t end, Outcome& outcome);
  void receive_whole_file(PartialFile& file, const PieceJob& job, Outcome& outcome);
  // Fills the buffer up to `most` bytes; less only at the end of the body or before a trouble.
  size_t fill(uint64_t most, Outcome& outcome);
  void append(PartialFile& file, size_t piece, std::span<const char> bytes, Outcome& outcome);

  const RepoId& repo_;
  HubClient& hub_;
  PieceQueue& queue_;
  std::vector<char> buffer_;
};

}  // namespace slip
