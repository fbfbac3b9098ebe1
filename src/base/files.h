// Files: whole reads, read-only maps, atomic writes. Every failure names the path.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slip {

// Refuses files above `limit` bytes, so that a wrong path does not fill the memory.
Result<std::string> read_text_file(const std::filesystem::path& path, uint64_t limit = 256u << 20);

// Writes beside the target and renames, so that a reader never sees half a file.
Status write_file_atomically(const std::filesystem::path& path, std::string_view content,
                             mode_t mode = 0644);

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

  // A range will be read now: the kernel may ask the disk for all of it at once.
  void read_ahead(size_t offset, size_t length) const;

  // A range has been used. Its pages leave this process, and the page cache too where something
  // else needs the memory: on machines whose GPU has no memory of its own.
  enum class PageCache : uint8_t { keep, drop };
  void drop_pages(size_t offset, size_t length, PageCache cache = PageCache::keep) const;

 private:
  MappedFile() = default;

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  int file_ = -1;
};

}  // namespace slip
