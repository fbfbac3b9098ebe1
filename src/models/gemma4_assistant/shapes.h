// The drafters of the published sizes, for synthetic weights.
#pragma once

#include "models/gemma4_assistant/config.h"

namespace slip::gemma4_assistant {

// The one of the model called `name` ("gemma-4-e2b"), which has the shape `target`.
DrafterConfig drafter_shape(const std::string& name, const gemma4::Config& target);

}  // namespace slip::gemma4_assistant
