// A safetensors file that is written piece by piece: all shapes are known before, the bytes come
// later and in any order, so that a file of any size needs no memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/safetensors.h"

namespace slip {

struct TensorDeclaration {
  std::string name;
  StoredType type;
  std::vector<int64_t> shape;

  uint64_t bytes() const;
};

class SafetensorsFile {
 public:
  // Writes the header beside `path`; the file has its name only when finish() gives it. Tensors of
  // wide types come first, as in Hugging Face's writer, so that all are aligned.
  static Result<SafetensorsFile> create(const std::filesystem::path& path,
                                        std::span<const TensorDeclaration> tensors,
                                        std::string_view format);

  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;
  ~SafetensorsFile();  // what was not finished is removed

  // Bytes [offset, offset + size) of a tensor, by its place in `tensors`.
  Status write(size_t tensor, uint64_t offset, std::span<const std::byte> bytes);

  // On the disk, under its name.
  Status finish();

 private:
  SafetensorsFile() = default;
  Error failure(const char* doing) const;

  std::filesystem::path path_, temporary_;
  int fd_ = -1;
  struct Place {
    uint64_t begin = 0, bytes = 0;
  };
  std::vector<Place> places_;
  uint64_t missing_ = 0;  // bytes that were not written yet
};

}  // namespace slip
