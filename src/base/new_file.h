// A file that is written beside the place where it will be: nobody reads half of it, and what was
// there before stays until it is whole. A symbolic link in its place is replaced, not followed: in
// the Hugging Face cache it leads to content that is known by its checksum.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace slip {

class NewFile {
 public:
  // `temporary` is its name until then; empty: one beside `path` that no other process takes.
  static Result<NewFile> create(const std::filesystem::path& path, mode_t mode = 0644,
                                std::filesystem::path temporary = {});

  NewFile(NewFile&&) noexcept = default;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();  // what was not finished is removed

  // Failures name the file by its name to be, and say that what was there is as it was.
  Status write(uint64_t offset, std::span<const std::byte> bytes);
  // On the disk, under its name, also after a power failure.
  Status finish();

  const std::filesystem::path& path() const { return path_; }

 private:
  NewFile(std::filesystem::path path, std::filesystem::path temporary, FileDescriptor file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(std::move(file)) {}
  Error failure(const char* doing) const;

  std::filesystem::path path_, temporary_;
  FileDescriptor file_;  // open until it is finished
};

}  // namespace slip
