// One safetensors file: eight bytes of header length, a JSON header, then the tensors' bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/stored_type.h"

namespace slip {

struct TensorEntry {
  std::string name;
  StoredType type;
  std::vector<int64_t> shape;
  uint64_t offset;  // from the start of the file
  uint64_t bytes;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the order of their bytes
  std::string format;  // __metadata__.format ("pt", "mlx"); empty in files that are not weights
};

// The largest header that Hugging Face's reader takes.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

// `start` is the file from its first byte up to at least the end of the header (the whole file is
// fine). Strict, as Hugging Face's reader is: the tensors' bytes must follow each other without
// overlap, hole or rest. `source` (the path) starts every message.
Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> start,
                                                   uint64_t file_size, const std::string& source);

struct TensorToWrite {
  std::string name;
  StoredType type;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

// Writes beside the target and renames. The tensors of wide types come first, as in Hugging Face's
// writer, so that all are aligned. `format` is "pt" for weights and empty for anything else.
Status write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                         std::string_view format = "");

}  // namespace slip
