// Which safetensors files of a folder are the model's; the rules are at the top of checkpoint.h.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slip {

enum class FileRole {
  weights,      // by its name, or because the index names it
  ask_header,   // the header's metadata decides
  not_weights,  // by its name
};

FileRole role_of_file(std::string_view name, std::span<const std::string> index_files);

// The names of all *.safetensors files, sorted; at least one. A path that is not a folder, or a
// folder without such files, is an error.
Result<std::vector<std::string>> list_safetensors(const std::filesystem::path& folder);

// Every file that the index names must be in the folder.
Status check_index_files(const std::filesystem::path& folder, std::span<const std::string> names,
                         std::span<const std::string> index_files);

// Without an index, NAME-00001-of-00003.safetensors still says that there are two more.
Status check_shard_numbers(const std::filesystem::path& folder, std::span<const std::string> names);

}  // namespace slip
