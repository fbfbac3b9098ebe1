// Files from a hub onto the disk: several connections at once, resumed where it ended last time,
// each file under its name only when its checksum is right.
#pragma once

#include <functional>

#include "hub/piece_fetch.h"

namespace slip {

struct DownloadOptions {
  int connections = 8;
  uint64_t piece_bytes = 64 << 20;
};

struct DownloadProgress {
  uint64_t total = 0;
  uint64_t done = 0;      // of these have come, now or earlier
  uint64_t verified = 0;  // and of these the checksum has been seen
  std::string trouble;    // what made us try again last; empty when there was nothing
  uint64_t troubles = 0;  // how often
};

struct DownloadJob {
  const RepoId& repo;
  const std::vector<DownloadItem>& items;
  const HubSettings& hub;
  const TlsContext& tls;
  DownloadOptions options;
};

// Returns when all is there. `on_progress` is called a few times per second, by the calling thread.
// A raised `stop` is a failure, as any other that leaves what came for the next time.
Status download(const DownloadJob& job, StopFlag& stop,
                const std::function<void(const DownloadProgress&)>& on_progress);

}  // namespace slip
