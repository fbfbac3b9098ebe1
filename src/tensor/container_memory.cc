#include "tensor/container_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace slip {
namespace {

uint64_t page_cache(const std::filesystem::path& cgroup) {
  std::ifstream statistics(cgroup / "memory.stat");
  std::string name;
  uint64_t bytes = 0, cache = 0;
  while (statistics >> name >> bytes)
    if (name == "inactive_file" || name == "active_file") cache += bytes;
  return cache;
}

}  // namespace

std::optional<uint64_t> free_in_container(const std::filesystem::path& cgroup) {
  std::ifstream limit_file(cgroup / "memory.max"), used_file(cgroup / "memory.current");
  uint64_t limit = 0, used = 0;
  if (!(limit_file >> limit) || !(used_file >> used)) return std::nullopt;  // absent, or "max"
  used -= std::min(used, page_cache(cgroup));
  return limit > used ? limit - used : 0;
}

}  // namespace slip
