// The five published sizes by name ("gemma-4-e2b"), for synthetic weights.
#pragma once

#include "models/gemma4/config.h"

namespace slip::gemma4 {

std::optional<Config> shape_by_name(const std::string& name);
std::vector<std::string> shape_names();

}  // namespace slip::gemma4
