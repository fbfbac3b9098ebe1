#include "hub/partial_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <numeric>
#include <utility>

#include "base/files.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMagic = 0x31304543'45495053;  // "SPIECE01" as bytes

fs::path with_suffix(fs::path path, const char* suffix) { return path += suffix; }

// The user knows the folder alone.
Error disk_error(const fs::path& path, const char* doing) {
  if (errno == ENOSPC || errno == EDQUOT)
    return error(path.parent_path().string(),
                 ": the disk is full; what has come is kept, so free some space and run it again");
  return system_error(path, doing);
}

}  // namespace

// The counters follow it.
struct PartialFile::Table {
  uint64_t magic, size, piece_bytes;
};

Result<PartialFile> PartialFile::open(const fs::path& target, uint64_t size, uint64_t piece_bytes) {
  PartialFile file;
  file.target_ = target;
  file.bytes_path_ = with_suffix(target, ".partial");
  file.table_path_ = with_suffix(target, ".pieces");
  file.size_ = size;
  file.piece_bytes_ = piece_bytes;
  file.fd_ = ::open(file.bytes_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file.fd_ < 0) return disk_error(file.bytes_path_, "open");
  struct stat info {};
  if (::fstat(file.fd_, &info) != 0) return disk_error(file.bytes_path_, "stat");
  const bool keep = uint64_t(info.st_size) == size;
  if (!keep) {
    ::unlink(file.table_path_.c_str());  // first: a table must never be about other bytes
    if (::ftruncate(file.fd_, off_t(size)) != 0) return disk_error(file.bytes_path_, "resize");
  }
  SLIP_TRY_STATUS(file.open_table(keep));
  return file;
}

Status PartialFile::open_table(bool keep) {
  table_bytes_ = sizeof(Table) + pieces() * sizeof(uint64_t);
  const int fd = ::open(table_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return disk_error(table_path_, "open");
  struct stat info {};
  keep = keep && ::fstat(fd, &info) == 0 && uint64_t(info.st_size) == table_bytes_;
  // Written, not only resized: a page of a mapped file that the disk has no room for ends a
  // process.
  const std::string zeros(table_bytes_, '\0');
  const bool written = keep || (::ftruncate(fd, 0) == 0 && ::pwrite(fd, zeros.data(), zeros.size(),
                                                                    0) == ssize_t(zeros.size()));
  void* mapped = written ? ::mmap(nullptr, table_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                         : MAP_FAILED;
  if (mapped == MAP_FAILED) {
    Error failure = disk_error(table_path_, "map");
    ::close(fd);
    return failure;
  }
  ::close(fd);
  table_ = static_cast<Table*>(mapped);
  bool usable =
      table_->magic == kMagic && table_->size == size_ && table_->piece_bytes == piece_bytes_;
  for (size_t i = 0; usable && i < pieces(); ++i) usable = *counter(i) <= length_of(i);
  if (usable) return {};
  start_again();
  table_->size = size_;
  table_->piece_bytes = piece_bytes_;
  std::atomic_ref(table_->magic).store(kMagic, std::memory_order_release);
  return {};
}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : target_(std::move(other.target_)),
      bytes_path_(std::move(other.bytes_path_)),
      table_path_(std::move(other.table_path_)),
      size_(other.size_),
      piece_bytes_(other.piece_bytes_),
      fd_(std::exchange(other.fd_, -1)),
      table_(std::exchange(other.table_, nullptr)),
      table_bytes_(other.table_bytes_) {}

PartialFile::~PartialFile() {
  if (fd_ >= 0) ::close(fd_);
  if (table_) ::munmap(table_, table_bytes_);
}

uint64_t* PartialFile::counter(size_t piece) const {
  return reinterpret_cast<uint64_t*>(table_ + 1) + piece;
}

uint64_t PartialFile::length_of(size_t piece) const {
  return std::min(piece_bytes_, size_ - begin_of(piece));
}

uint64_t PartialFile::done(size_t piece) const {
  return std::atomic_ref(*counter(piece)).load(std::memory_order_acquire);
}

uint64_t PartialFile::bytes_done() const {
  uint64_t sum = 0;
  for (size_t i = 0; i < pieces(); ++i) sum += done(i);
  return sum;
}

uint64_t PartialFile::bytes_done_in_a_row(uint64_t from) const {
  while (from < size_) {
    const size_t piece = piece_at(from);
    const uint64_t there = done(piece);
    from = std::max(from, begin_of(piece) + there);
    if (there < length_of(piece)) break;
  }
  return from;
}

Status PartialFile::append(size_t piece, std::span<const char> bytes) {
  uint64_t before = done(piece);
  check(before + bytes.size() <= length_of(piece), "more bytes than the piece has room for");
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(fd_, bytes.data(), bytes.size(), off_t(begin_of(piece) + before));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return disk_error(bytes_path_, "write");
    before += uint64_t(count);
    std::atomic_ref(*counter(piece)).store(before, std::memory_order_release);
    bytes = bytes.subspan(size_t(count));
  }
  return {};
}

Status PartialFile::read(uint64_t offset, std::span<char> into) const {
  while (!into.empty()) {
    const ssize_t count = ::pread(fd_, into.data(), into.size(), off_t(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return disk_error(bytes_path_, "read");
    if (count == 0) return error(bytes_path_.string(), ": became shorter while we used it");
    offset += uint64_t(count);
    into = into.subspan(size_t(count));
  }
  return {};
}

void PartialFile::start_again() {
  for (size_t i = 0; i < pieces(); ++i)
    std::atomic_ref(*counter(i)).store(0, std::memory_order_release);
}

void PartialFile::begin_writing_out(uint64_t offset, uint64_t length) const {
  ::sync_file_range(fd_, off_t(offset), off_t(length), SYNC_FILE_RANGE_WRITE);
}

Status PartialFile::finish() {
  if (::fdatasync(fd_) != 0) return disk_error(bytes_path_, "write out");
  if (::rename(bytes_path_.c_str(), target_.c_str()) != 0) return disk_error(target_, "name");
  ::unlink(
      table_path_.c_str());  // without the bytes it is worth nothing, and a new one replaces it
  return {};
}

uint64_t PartialFile::bytes_there(const fs::path& target, uint64_t size, uint64_t piece_bytes) {
  std::error_code code;
  if (!fs::exists(with_suffix(target, ".partial"), code)) return 0;
  const Result<PartialFile> file = open(target, size, piece_bytes);
  return file.ok() ? file.value().bytes_done() : 0;
}

uint64_t PartialFile::disk_bytes(const fs::path& target) {
  struct stat info {};
  if (::stat(with_suffix(target, ".partial").c_str(), &info) != 0) return 0;
  return uint64_t(info.st_blocks) * 512;
}

}  // namespace slip
