// What doctor measures and looks at, one function each.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "kernels/cpu/simd/isa.h"

namespace slip {

struct Processor {
  int sockets = 0, cores = 0, threads = 0;  // of the machine
  int usable_threads = 0;                   // that this process may use
  std::optional<double> quota;              // processors that a container's limit allows
};
Processor describe_processor();

struct MachineMemory {
  uint64_t total = 0, available = 0;
  uint64_t page_size = 0;
  std::string huge_pages;         // "always", "madvise", "never" or unknown
  std::optional<uint64_t> limit;  // of the container
};
MachineMemory describe_memory();

struct DiskSpeed {
  std::filesystem::path file;
  uint64_t bytes = 0;  // that were read
  double bytes_per_second = 0;
  const char* how = "";  // past the cache, or through it
};
// Reads the largest weight file in `folder` for at most `seconds`.
Result<DiskSpeed> measure_disk(const std::filesystem::path& folder, double seconds);

struct ModelCheck {
  std::filesystem::path folder;
  double load_seconds = 0, tokens_per_second = 0;
  std::string text;  // a few words that it wrote
};
// Finds minnow, loads it and lets it write a little.
Result<ModelCheck> check_default_model();

struct CacheFolder {
  std::filesystem::path path;
  bool exists = false;
  std::vector<std::string> models;  // "org/name"
};
std::vector<CacheFolder> look_at_caches(const std::vector<std::filesystem::path>& folders);

}  // namespace slip
