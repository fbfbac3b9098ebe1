// Files: whole reads, read-only maps, atomic writes. Every failure names the path.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "base/result.h"

namespace slip {

// "PATH: cannot DOING: No such file or directory", by default for errno.
Error system_error(const std::filesystem::path& path, const char* doing,
                   const std::error_code& code = std::error_code(errno, std::generic_category()));

// Refuses files above `limit` bytes, so that a wrong path does not fill the memory.
Result<std::string> read_text_file(const std::filesystem::path& path, uint64_t limit = 256u << 20);

// A failure if the folder that a file is to be written into is not there, or if what has its name
// is a device or the like, which a file would replace.
Status check_writable(const std::filesystem::path& file);

// Where a file that a person named is to be written: behind symbolic links, which stay, also where
// they lead to nothing yet. Fails as check_writable(): ask before computing for long.
Result<std::filesystem::path> place_to_write(const std::filesystem::path& file);

// So that new names in a folder outlive a power failure.
Status sync_folder(const std::filesystem::path& folder);

// Free bytes on the disk that a folder is on, or will be.
Result<uint64_t> free_disk_bytes(const std::filesystem::path& folder);

// As a NewFile: nobody reads half of it, and it is on the disk before it has its name.
Status write_file_atomically(const std::filesystem::path& path, std::string_view content,
                             mode_t mode = 0644);

// Memory that a disk can write to without a copy in between.
class DiskRoom {
 public:
  // At least so many bytes; what was there before is gone.
  std::byte* reserve(size_t bytes);

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
};

// A file mapped read-only. Moves, never copies; the bytes live as long as the object.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  // The same bytes as `part` of bytes(), all of which will be read now. What the page cache does
  // not have is read past it into `room`: a large read is faster than the page faults it saves, and
  // what is read once need not drive out everything else.
  std::span<const std::byte> fetch(std::span<const std::byte> part, DiskRoom& room) const;

  // A range has been used. Its pages leave this process, and the page cache too where something
  // else needs the memory: on machines whose GPU has no memory of its own.
  enum class PageCache : uint8_t { keep, drop };
  void drop_pages(size_t offset, size_t length, PageCache cache = PageCache::keep) const;

 private:
  MappedFile() = default;
  bool read_directly(size_t begin, size_t needed, size_t length, std::byte* to) const;

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  int file_ = -1;
  int direct_file_ = -1;  // none where the file system cannot
};

}  // namespace slip
