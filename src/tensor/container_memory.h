// What the memory limit of a container leaves.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace slip {

// `cgroup` has the files of a version 2 control group. Nothing where there is no limit. The page
// cache does not count as used: it gives way, and after a load it holds all the weights' files.
std::optional<uint64_t> free_in_container(const std::filesystem::path& cgroup = "/sys/fs/cgroup");

}  // namespace slip
