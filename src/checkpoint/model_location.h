// From what a person types after --model to a folder on disk. Nothing is downloaded.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace slip {

struct LocationOptions {
  // Hugging Face caches, looked through in this order: $HF_HUB_CACHE, $HF_HOME,
  // ~/.cache/huggingface. A folder may be the hub itself or hold it as hub/.
  std::vector<std::filesystem::path> hf_cache_dirs;
};

// `name` is a folder, or "org/name" or "org/name@revision" (a branch, tag or commit) of a model in
// one of the caches. A folder of that name wins.
Result<std::filesystem::path> find_model(const std::string& name, const LocationOptions& options);

}  // namespace slip
