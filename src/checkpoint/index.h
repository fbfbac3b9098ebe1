// model.safetensors.index.json: which tensor is in which file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slip {

struct IndexEntry {
  std::string tensor;
  size_t file;  // position in SafetensorsIndex::files
};

struct SafetensorsIndex {
  std::vector<std::string> files;   // plain file names, in order of first use
  std::vector<IndexEntry> entries;  // sorted by tensor
};

inline constexpr std::string_view kIndexName = "model.safetensors.index.json";

// File names that could lead out of the folder are refused. `source` (the path) starts every
// message. metadata.total_size is not read: it is wrong in many published files.
Result<SafetensorsIndex> parse_index(std::string_view text, const std::string& source);

}  // namespace slip
