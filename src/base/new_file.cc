#include "base/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

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
  SLIP_TRY_STATUS(check_folder_of(path));
  if (temporary.empty()) {
    temporary = path;
    temporary += cat(".tmp", ::getpid());
  }
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (file < 0) return unchanged(system_error(path, "create"));
  return NewFile(path, std::move(temporary), file);
}

NewFile::NewFile(std::filesystem::path path, std::filesystem::path temporary, int file)
    : path_(std::move(path)), temporary_(std::move(temporary)), file_(file) {}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      file_(std::exchange(other.file_, -1)) {}

NewFile::~NewFile() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(temporary_.c_str());
}

Error NewFile::failure(const char* doing) const { return unchanged(system_error(path_, doing)); }

Status NewFile::write(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file_, bytes.data(), bytes.size(), off_t(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure("write");
    bytes = bytes.subspan(size_t(count));
    offset += uint64_t(count);
  }
  return {};
}

Status NewFile::finish() {
  if (::fsync(file_) != 0) return failure("write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failure("replace");
  ::close(std::exchange(file_, -1));
  return {};
}

}  // namespace slip
