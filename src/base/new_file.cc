#include "base/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"

namespace slip {
namespace {

Error unchanged(Error failure) {
  failure.message += "; nothing was changed";
  return failure;
}

}  // namespace

Result<NewFile> NewFile::create(const std::filesystem::path& path, mode_t mode,
                                std::filesystem::path temporary) {
  SLIP_TRY_STATUS(check_writable(path));
  if (temporary.empty()) {
    temporary = path;
    temporary += cat(".tmp", ::getpid());
  }
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!file.is_open()) return unchanged(system_error(path, "create"));
  return NewFile(path, std::move(temporary), std::move(file));
}

NewFile::~NewFile() {
  if (file_.is_open()) ::unlink(temporary_.c_str());
}

Error NewFile::failure(const char* doing) const { return unchanged(system_error(path_, doing)); }

Status NewFile::write(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file_.get(), bytes.data(), bytes.size(), off_t(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure("write");
    bytes = bytes.subspan(size_t(count));
    offset += uint64_t(count);
  }
  return {};
}

Status NewFile::finish() {
  if (::fsync(file_.get()) != 0) return failure("write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failure("replace");
  file_.close();
  return sync_folder(path_.parent_path());
}

}  // namespace slip
