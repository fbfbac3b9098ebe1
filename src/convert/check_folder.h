// Whether a checkpoint would load, told without loading it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/threads.h"
#include "convert/hybrid.h"
#include "kernels/ops.h"

namespace slip {

struct FolderReport {
  std::vector<std::string> problems;  // why it would not load, or not be right; empty: it is good
  std::vector<std::string> notes;     // what a person should know
  std::string family;                 // "qwen3_5_moe"
  int64_t layers = 0;
  int64_t tensors = 0, files = 0;
  uint64_t bytes = 0;
  bool has_mtp = false;

  bool good() const { return problems.empty(); }
};

// Names, shapes and types in both directions, truncated and missing files, what the index lacks.
// `ops` is only asked how it would hold things.
FolderReport check_folder(const std::filesystem::path& folder, const Ops& ops);

// Reads every number as well: NaN and infinity, zero points, scales. Adds to the problems; a
// failure is an interruption.
Status check_numbers(const std::filesystem::path& folder, ThreadPool& pool, FolderReport& report,
                     const ConvertProgress& progress);

}  // namespace slip
