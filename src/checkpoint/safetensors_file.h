// A safetensors file that is written piece by piece: all shapes are known before, the bytes come
// later and in any order, so that a file of any size needs no memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/new_file.h"
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
  // Writes the header. Tensors of wide types come first, as in Hugging Face's writer, so that all
  // are aligned.
  static Result<SafetensorsFile> create(const std::filesystem::path& path,
                                        std::span<const TensorDeclaration> tensors,
                                        std::string_view format);

  // Bytes [offset, offset + size) of a tensor, by its place in `tensors`.
  Status write(size_t tensor, uint64_t offset, std::span<const std::byte> bytes);

  // On the disk, under its name.
  Status finish();

 private:
  struct Place {
    uint64_t begin = 0, bytes = 0;
  };
  SafetensorsFile(NewFile file, std::vector<Place> places, uint64_t missing)
      : file_(std::move(file)), places_(std::move(places)), missing_(missing) {}

  NewFile file_;
  std::vector<Place> places_;
  uint64_t missing_;  // bytes that were not written yet
};

}  // namespace slip
