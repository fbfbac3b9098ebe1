// Files: whole reads, read-only maps, atomic writes. Every failure names the path.
#pragma once

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
Status write_file_atomically(const std::filesystem::path& path, std::string_view content);

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

  // Tells the kernel that a range has been used, so that the page cache does not crowd out weights
  // that were repacked from it.
  void drop_pages(size_t offset, size_t length) const;

 private:
  MappedFile() = default;

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace slip
