// The five published sizes by name ("gemma-4-e2b"), for synthetic weights.
#pragma once

#include "models/gemma4/drafter_config.h"

namespace slip::gemma4 {

struct Shapes {
  Config target;
  DrafterConfig drafter;
};
std::optional<Shapes> shape_by_name(const std::string& name);
std::vector<std::string> shape_names();

}  // namespace slip::gemma4
