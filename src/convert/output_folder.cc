#include "convert/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/files.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

// Holds what the folder is for; gone when the folder is published.
constexpr std::string_view kPurposeFile = ".purpose";

Status sync_file(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error(path, "open");
  const bool synced = ::fsync(fd) == 0;
  ::close(fd);
  if (!synced) return system_error(path, "write");
  return {};
}

// A folder named "x/" has no file name of its own.
fs::path without_slash(const fs::path& path) {
  const fs::path normal = fs::absolute(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

bool has_purpose(const fs::path& folder, std::string_view purpose) {
  const Result<std::string> found = read_text_file(folder / kPurposeFile);
  return found.ok() && found.value() == purpose;
}

// What a killed run was just writing.
bool is_unfinished(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".new") || name.find(".tmp") != std::string::npos;
}

Status remove_content(const fs::path& folder, bool only_unfinished) {
  std::error_code code;
  for (fs::directory_iterator entry(folder, code); !code && entry != fs::directory_iterator();
       entry.increment(code)) {
    if (only_unfinished && !is_unfinished(entry->path())) continue;
    std::error_code removed;
    fs::remove_all(entry->path(), removed);
    if (removed) return system_error(entry->path(), "remove", removed);
  }
  if (code) return system_error(folder, "list", code);
  return {};
}

}  // namespace

Result<LinkWay> parse_link_way(std::string_view word) {
  if (word == "auto") return LinkWay::automatic;
  if (word == "hard") return LinkWay::hard;
  if (word == "reference") return LinkWay::reference;
  if (word == "copy") return LinkWay::copy;
  return error("expected auto, hard, reference or copy, found \"", word, "\"");
}

Status check_free(const fs::path& target) {
  std::error_code ignored;
  if (fs::symlink_status(without_slash(target), ignored).type() == fs::file_type::not_found)
    return {};
  return error(target.string(),
               ": is there already and is not what this command makes; remove it, or choose "
               "another folder");
}

Result<OutputFolder> OutputFolder::open(const fs::path& target, std::string_view purpose) {
  OutputFolder folder;
  folder.target_ = without_slash(target);
  SLIP_TRY_STATUS(check_free(folder.target_));
  std::error_code code;
  folder.hidden_ =
      folder.target_.parent_path() / cat(".", folder.target_.filename().string(), ".partial");
  fs::create_directories(folder.hidden_, code);
  if (code) return system_error(folder.hidden_, "create", code);
  folder.lock_ = ::open(folder.hidden_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder.lock_ < 0) return system_error(folder.hidden_, "open");
  if (::flock(folder.lock_, LOCK_EX | LOCK_NB) != 0)
    return error(folder.target_.string(), ": another process is making it");
  const bool goes_on = has_purpose(folder.hidden_, purpose);
  SLIP_TRY_STATUS(remove_content(folder.hidden_, goes_on));
  if (!goes_on) SLIP_TRY_STATUS(write_file_atomically(folder.file(kPurposeFile), purpose));
  return folder;
}

OutputFolder::OutputFolder(OutputFolder&& other) noexcept
    : target_(std::move(other.target_)),
      hidden_(std::move(other.hidden_)),
      lock_(std::exchange(other.lock_, -1)) {}

OutputFolder::~OutputFolder() {
  if (lock_ >= 0) ::close(lock_);
}

bool OutputFolder::has(std::string_view name) const {
  std::error_code code;
  return fs::exists(file(name), code);
}

Status OutputFolder::write(std::string_view name, std::string_view content) const {
  return write_file_atomically(file(name), content);
}

Status OutputFolder::check_room(const std::map<std::string, uint64_t>& files) const {
  uint64_t needed = 0;
  for (const auto& [name, bytes] : files)
    if (!has(name)) needed += bytes;
  SLIP_TRY(const uint64_t there, free_disk_bytes(hidden_));
  if (needed > there)
    return error(target_.string(), ": needs ", needed, " more bytes of disk, ", there,
                 " are free; make room, or choose another folder");
  return {};
}

Result<uint64_t> OutputFolder::bytes_to_adopt(const fs::path& from, LinkWay way) const {
  struct stat there {
  }, here{};
  if (::stat(from.c_str(), &there) != 0) return system_error(from, "look at");
  if (::stat(hidden_.c_str(), &here) != 0) return system_error(hidden_, "look at");
  const bool copies =
      way == LinkWay::copy || (way == LinkWay::automatic && there.st_dev != here.st_dev);
  return copies ? uint64_t(there.st_size) : uint64_t{0};
}

Result<uint64_t> OutputFolder::adopt(const fs::path& from, LinkWay way) const {
  std::error_code code;
  // Files of the Hugging Face cache are links; the content is what counts.
  const fs::path content = fs::canonical(from, code);
  if (code) return system_error(from, "open", code);
  const fs::path into = file(from.filename().string());
  fs::remove(into, code);
  if (way == LinkWay::reference) {
    fs::create_symlink(content, into, code);
    if (code) return system_error(into, "make a link", code);
    return uint64_t{0};
  }
  if (way == LinkWay::hard || way == LinkWay::automatic) {
    fs::create_hard_link(content, into, code);
    if (!code) return uint64_t{0};
    if (way == LinkWay::hard) return system_error(into, "make a hard link", code);
  }
  const uint64_t size = fs::file_size(content, code);
  if (code) return system_error(content, "look at", code);
  fs::path fresh = into;
  fresh += ".new";
  fs::copy_file(content, fresh, fs::copy_options::overwrite_existing, code);
  if (code) return system_error(into, "copy", code);
  fs::permissions(fresh, fs::perms::owner_write, fs::perm_options::add, code);
  SLIP_TRY_STATUS(sync_file(fresh));
  if (::rename(fresh.c_str(), into.c_str()) != 0) return system_error(into, "replace");
  return size;
}

Status OutputFolder::publish() {
  SLIP_TRY_STATUS(sync_folder(hidden_));
  if (::rename(hidden_.c_str(), target_.c_str()) != 0) return system_error(target_, "create");
  // Only now: a run that was killed before the folder had its name is known by it.
  ::unlink((target_ / kPurposeFile).c_str());
  return sync_folder(target_.parent_path());
}

Status OutputFolder::discard() {
  std::error_code code;
  fs::remove_all(hidden_, code);
  if (code) return system_error(hidden_, "remove", code);
  return {};
}

}  // namespace slip
