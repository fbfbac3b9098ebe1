// The published sizes by name ("qwen3.5-35b-a3b"), for synthetic weights.
#pragma once

#include "models/qwen3_5/config.h"

namespace slip::qwen3_5 {

std::optional<Config> shape_by_name(const std::string& name);
std::vector<std::string> shape_names();

}  // namespace slip::qwen3_5
