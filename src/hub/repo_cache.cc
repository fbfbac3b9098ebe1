#include "hub/repo_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/files.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

Status make_folder(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) return error(folder.string(), ": cannot make this folder: ", code.message());
  return {};
}

}  // namespace

Result<std::optional<RepoLock>> RepoLock::try_take(const fs::path& file) {
  SLIP_TRY_STATUS(make_folder(file.parent_path()));
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return system_error(file, "open");
  RepoLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return std::optional<RepoLock>(std::move(lock));
  if (errno == EWOULDBLOCK || errno == EINTR) return std::optional<RepoLock>();
  return system_error(file, "lock");
}

RepoLock::RepoLock(RepoLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
RepoLock::~RepoLock() {
  if (fd_ >= 0) ::close(fd_);
}

RepoCache::RepoCache(fs::path hub_folder, const RepoId& repo)
    : hub_folder_(std::move(hub_folder)), folder_(hub_folder_ / repo.cache_folder()), repo_(repo) {}

Status RepoCache::prepare() const {
  for (const char* part : {"blobs", "snapshots", "refs"})
    SLIP_TRY_STATUS(make_folder(folder_ / part));
  return {};
}

fs::path RepoCache::blob(const RemoteFile& file) const { return folder_ / "blobs" / file.oid; }
fs::path RepoCache::snapshot(const std::string& commit) const {
  return folder_ / "snapshots" / commit;
}
fs::path RepoCache::lock_file() const {
  return hub_folder_ / ".locks" / repo_.cache_folder() / "slipstream.lock";
}

bool RepoCache::has_blob(const RemoteFile& file) const {
  std::error_code code;
  const uint64_t size = fs::file_size(blob(file), code);
  return !code && size == file.size;
}

// Relative, so that a cache can be moved: one step up per folder the file lies in.
fs::path RepoCache::link_target(const RemoteFile& file) const {
  fs::path up = "../..";
  for (const char byte : file.path)
    if (byte == '/') up /= "..";
  return up / "blobs" / file.oid;
}

Status RepoCache::link(const fs::path& snapshot_folder, const RemoteFile& file) const {
  const fs::path place = snapshot_folder / file.path, target = link_target(file);
  std::error_code code;
  if (fs::read_symlink(place, code) == target) return {};
  SLIP_TRY_STATUS(make_folder(place.parent_path()));
  fs::remove(place, code);
  fs::create_symlink(target, place, code);
  if (code) return error(place.string(), ": cannot make this link: ", code.message());
  return {};
}

Status RepoCache::publish(const std::string& commit, const std::vector<RemoteFile>& files) const {
  const fs::path folder = snapshot(commit);
  std::error_code code;
  const bool fresh = !fs::exists(folder, code);
  // A folder of that name counts as the model, so it must not be there half-full.
  const fs::path built = fresh ? folder.parent_path() / (commit + ".unfinished") : folder;
  for (const RemoteFile& file : files) SLIP_TRY_STATUS(link(built, file));
  if (fresh) {
    fs::rename(built, folder, code);
    if (code) return error(folder.string(), ": cannot make this folder: ", code.message());
  }
  if (repo_.revision == commit) return {};
  const fs::path ref = folder_ / "refs" / repo_.revision;
  SLIP_TRY_STATUS(make_folder(ref.parent_path()));
  return write_file_atomically(ref, commit);
}

bool RepoCache::is_published(const std::string& commit,
                             const std::vector<RemoteFile>& files) const {
  const fs::path folder = snapshot(commit);
  std::error_code code;
  const bool linked = std::all_of(files.begin(), files.end(), [&](const RemoteFile& file) {
    return fs::read_symlink(folder / file.path, code) == link_target(file);
  });
  if (!linked) return false;
  if (repo_.revision == commit) return true;
  const Result<std::string> ref = read_text_file(folder_ / "refs" / repo_.revision, 4096);
  return ref.ok() && ref.value() == commit;
}

Result<uint64_t> RepoCache::free_bytes() const { return free_disk_bytes(folder_); }

}  // namespace slip
