// What a step must move and multiply: which bounds tokens per second.
#pragma once

#include "models/common/tally.h"
#include "models/qwen3_5/weights.h"

namespace slip::qwen3_5 {

// A pass of all layers and the head. The weights must be loaded.
void add_step(const Config& config, const Weights& weights, Tally& tally);

// A pass of the MTP layer, and what it scores of the head.
void add_draft(const Config& config, const Weights& weights, Tally& tally);

}  // namespace slip::qwen3_5
