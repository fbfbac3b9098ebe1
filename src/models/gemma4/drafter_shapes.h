// The drafters of the published sizes, for synthetic weights.
#pragma once

#include "models/gemma4/drafter_config.h"

namespace slip::gemma4 {

// The one of the model called `name` ("gemma-4-e2b"), which has the shape `target`.
DrafterConfig drafter_shape(const std::string& name, const Config& target);

}  // namespace slip::gemma4
