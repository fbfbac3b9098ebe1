#include "base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <semaphore>
#include <vector>

#include "base/file_descriptor.h"
#include "base/new_file.h"

namespace slip {
namespace {

// Opens a regular file and tells its size; directories, pipes and devices are refused.
Result<uint64_t> regular_file_size(int fd, const std::filesystem::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return system_error(path, "stat");
  if (!S_ISREG(info.st_mode)) return error(path.string(), ": not a regular file");
  return uint64_t(info.st_size);
}

}  // namespace

Error system_error(const std::filesystem::path& path, const char* doing,
                   const std::error_code& code) {
  const bool loop = code == std::errc::too_many_symbolic_link_levels;
  return error(path.string(), ": cannot ", doing, ": ", code.message(),
               loop ? " (symbolic links form a loop)" : "");
}

Result<std::string> read_text_file(const std::filesystem::path& path, uint64_t limit) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return system_error(path, "open");
  SLIP_TRY(const uint64_t size, regular_file_size(file.get(), path));
  if (size > limit)
    return error(path.string(), ": has ", size, " bytes, more than the ", limit, " expected here");
  std::string text(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t count = ::read(file.get(), text.data() + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(path, "read");
    if (count == 0) break;
    done += size_t(count);
  }
  text.resize(done);
  return text;
}

Status check_writable(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
    return error(file.string(), ": cannot be written: there is no folder ", folder.string());
  const std::filesystem::file_status found = std::filesystem::status(file, ignored);
  if (std::filesystem::is_other(found))
    return error(file.string(), ": cannot be written: it is a device, a pipe or a socket; name a ",
                 "file");
  return {};
}

Result<std::filesystem::path> place_to_write(const std::filesystem::path& file) {
  std::filesystem::path place = file;
  std::error_code code;
  constexpr int kMostLinks = 40;  // as many as the kernel follows
  for (int links = 0; std::filesystem::is_symlink(place, code); ++links) {
    if (links == kMostLinks)
      return system_error(file, "follow",
                          std::make_error_code(std::errc::too_many_symbolic_link_levels));
    const std::filesystem::path leads_to = std::filesystem::read_symlink(place, code);
    if (code) return system_error(file, "follow", code);
    place = place.parent_path() / leads_to;
  }
  SLIP_TRY_STATUS(check_writable(place));
  return place;
}

Status sync_folder(const std::filesystem::path& folder) {
  const FileDescriptor opened(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) return system_error(folder, "open");
  // Some file systems cannot, and say that.
  if (::fsync(opened.get()) != 0 && errno != EINVAL) return system_error(folder, "write");
  return {};
}

Result<uint64_t> free_disk_bytes(const std::filesystem::path& folder) {
  std::error_code code;
  std::filesystem::path existing = std::filesystem::absolute(folder, code).lexically_normal();
  while (!std::filesystem::exists(existing, code) && existing.has_relative_path())
    existing = existing.parent_path();
  struct statvfs info {};
  if (::statvfs(existing.c_str(), &info) != 0) return system_error(existing, "look at the disk of");
  return uint64_t(info.f_bavail) * uint64_t(info.f_frsize);
}

Status write_file_atomically(const std::filesystem::path& path, std::string_view content,
                             mode_t mode) {
  SLIP_TRY(NewFile file, NewFile::create(path, mode));
  SLIP_TRY_STATUS(file.write(0, std::as_bytes(std::span(content))));
  return file.finish();
}

namespace {

size_t page_size() { return size_t(::sysconf(_SC_PAGESIZE)); }

// What direct reads are aligned to: no disk and no file system wants more.
constexpr size_t kDiskBlock = 4096;
// Less than this the kernel, which reads ahead, gets as fast.
constexpr size_t kLargeRead = size_t{512} << 10;

// Direct reads that a disk is asked for at the same time, by all threads together: enough to keep
// it busy, and so few that what it sees is still nearly the order of the file.
constexpr int kReadsAtOnce = 6;
std::counting_semaphore<kReadsAtOnce> free_reads(kReadsAtOnce);

class TurnToRead {
 public:
  TurnToRead() { free_reads.acquire(); }
  ~TurnToRead() { free_reads.release(); }
  TurnToRead(const TurnToRead&) = delete;
  TurnToRead& operator=(const TurnToRead&) = delete;
};

// Whether the page cache has all of a range of a mapped file that begins a page, as far as the
// kernel tells: it says yes to those who may not know.
bool is_cached(std::byte* page, size_t length) {
  std::vector<unsigned char> there((length + page_size() - 1) / page_size());
  if (::mincore(page, length, there.data()) != 0) return true;
  return std::ranges::all_of(there, [](unsigned char flags) { return (flags & 1) != 0; });
}

}  // namespace

std::byte* DiskRoom::reserve(size_t bytes) {
  if (bytes > size_) {
    size_ = 0;
    data_.reset();
    data_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kDiskBlock})));
    size_ = bytes;
  }
  return data_.get();
}

void DiskRoom::Free::operator()(std::byte* data) const {
  ::operator delete (data, std::align_val_t{kDiskBlock});
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  MappedFile mapped;
  mapped.path_ = path;
  mapped.file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (mapped.file_ < 0) return system_error(path, "open");
  SLIP_TRY(const uint64_t size, regular_file_size(mapped.file_, path));
  mapped.size_ = size;
  if (size > 0) {
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, mapped.file_, 0);
    if (data == MAP_FAILED) return system_error(path, "map");
    mapped.data_ = static_cast<const std::byte*>(data);
  }
  mapped.direct_file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(file_, other.file_);
  std::swap(direct_file_, other.direct_file_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
  if (file_ >= 0) ::close(file_);
  if (direct_file_ >= 0) ::close(direct_file_);
}

std::span<const std::byte> MappedFile::fetch(std::span<const std::byte> part,
                                             DiskRoom& room) const {
  if (part.empty()) return part;
  const auto offset = size_t(part.data() - data_);
  const size_t block = std::max(kDiskBlock, page_size());  // both are powers of two
  const size_t begin = offset / block * block, needed = offset + part.size() - begin;
  std::byte* from = const_cast<std::byte*>(data_) + begin;
  if (is_cached(from, needed)) return part;
  const size_t length = (needed + kDiskBlock - 1) / kDiskBlock * kDiskBlock;
  if (direct_file_ >= 0 && needed >= kLargeRead) {
    std::byte* to = room.reserve(length);
    if (read_directly(begin, needed, length, to)) return {to + (offset - begin), part.size()};
  }
  ::madvise(from, needed, MADV_WILLNEED);  // all of it at once
  return part;
}

// Whether `needed` bytes, of `length` that were asked for, came.
bool MappedFile::read_directly(size_t begin, size_t needed, size_t length, std::byte* to) const {
  const TurnToRead turn;
  for (size_t done = 0; done < needed;) {
    const ssize_t got = ::pread(direct_file_, to + done, length - done, off_t(begin + done));
    if (got < 0 && errno == EINTR) continue;
    // The file ends within a block, so that a read after the last one would begin within one.
    if (got <= 0 || (size_t(got) % kDiskBlock != 0 && done + size_t(got) < needed)) return false;
    done += size_t(got);
  }
  return true;
}

void MappedFile::drop_pages(size_t offset, size_t length, PageCache cache) const {
  const size_t begin = (offset + page_size() - 1) / page_size() * page_size();
  const size_t end = (offset + length) / page_size() * page_size();
  if (!data_ || end <= begin) return;
  ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
  if (cache == PageCache::drop)
    ::posix_fadvise(file_, off_t(begin), off_t(end - begin), POSIX_FADV_DONTNEED);
}

}  // namespace slip
