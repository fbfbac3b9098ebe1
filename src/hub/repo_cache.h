// One repository in the Hugging Face cache, as every program that uses it expects it:
//
//   models--org--name/blobs/<oid>                    the files, named by their checksums
//   models--org--name/snapshots/<commit>/<path>      links to them
//   models--org--name/refs/<revision>                the commit a branch stood at
//   .locks/models--org--name/                        who is writing
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/repo_id.h"
#include "hub/repo_listing.h"

namespace slip {

// Held while a process writes into a repository's folder; the system lets go of it when the process
// ends, however it ends.
class RepoLock {
 public:
  // Nothing if another process has it.
  static Result<std::optional<RepoLock>> try_take(const std::filesystem::path& file);

  RepoLock(RepoLock&& other) noexcept;
  RepoLock& operator=(RepoLock&&) = delete;
  ~RepoLock();

 private:
  explicit RepoLock(int fd) : fd_(fd) {}
  int fd_;
};

class RepoCache {
 public:
  // `hub_folder` holds the models--... folders.
  RepoCache(std::filesystem::path hub_folder, const RepoId& repo);

  // Makes the folders that are missing.
  Status prepare() const;

  std::filesystem::path blob(const RemoteFile& file) const;
  std::filesystem::path snapshot(const std::string& commit) const;
  std::filesystem::path lock_file() const;

  // Whether the file is there; blobs are complete and verified from the moment they have that name.
  bool has_blob(const RemoteFile& file) const;

  // Makes the snapshot's links, all at once where there was none of them, and points the revision
  // at it. All blobs must be there.
  Status publish(const std::string& commit, const std::vector<RemoteFile>& files) const;

  // Whether publish() would change nothing.
  bool is_published(const std::string& commit, const std::vector<RemoteFile>& files) const;

  // What the disk still takes.
  Result<uint64_t> free_bytes() const;

 private:
  Status link(const std::filesystem::path& snapshot_folder, const RemoteFile& file) const;
  std::filesystem::path link_target(const RemoteFile& file) const;

  std::filesystem::path hub_folder_, folder_;
  RepoId repo_;
};

}  // namespace slip
