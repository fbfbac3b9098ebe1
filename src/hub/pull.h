// A repository from a hub into the Hugging Face cache. May be ended at any moment, and run again.
#pragma once

#include "hub/download.h"
#include "hub/file_choice.h"
#include "hub/repo_cache.h"

namespace slip {

struct PullRequest {
  RepoId repo = {};
  std::filesystem::path hub_folder = {};  // where the models--... folders are
  HubSettings hub = {};
  FileChoice files = {};
  DownloadOptions download = {};
  bool verify_present = false;  // look at the checksums of files that are there, too
};

struct PullPlan {
  std::string commit;
  size_t files = 0;             // that were chosen
  uint64_t bytes = 0;           // of all of them
  uint64_t bytes_to_fetch = 0;  // of those that are not there
  uint64_t bytes_resumed = 0;   // that came of them already
};

// Hears of what happens, in the thread that called pull().
class PullListener {
 public:
  virtual ~PullListener() = default;
  // The hub did not answer and is asked again.
  virtual void trying_again(const std::string& /*why*/) {}
  // Another process pulls the same repository; we wait for it.
  virtual void waiting_for_another() {}
  // A file that was there was not what it should be; it is fetched again.
  virtual void damaged(const std::string& /*path*/) {}
  // Whether to go on.
  virtual bool planned(const PullPlan&) { return true; }
  // config.json is here, what else is missing is not: `weight_bytes` belong to the model in all. A
  // failure ends the pull.
  virtual Status configured(const std::string& /*config*/, uint64_t /*weight_bytes*/) { return {}; }
  virtual void progressed(const DownloadProgress&) {}
};

struct PullResult {
  enum class End { complete, interrupted, declined };
  End end = End::complete;
  std::filesystem::path folder;  // with config.json in it, when complete
  PullPlan plan;
};

// SIGPIPE must be ignored. `interrupted` may be set by a signal handler.
Result<PullResult> pull(const PullRequest& request, PullListener& listener,
                        const std::atomic<bool>& interrupted);

}  // namespace slip
