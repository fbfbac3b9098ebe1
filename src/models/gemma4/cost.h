// What a step must move and multiply: which bounds tokens per second.
#pragma once

#include "models/common/tally.h"
#include "models/gemma4/weights.h"

namespace slip::gemma4 {

// A pass of all layers and the head. The weights must be loaded.
void add_step(const Config& config, const Weights& weights, Tally& tally);

// The layers of such a pass.
void add_layers(const Config& config, std::span<const Layer> layers, Tally& tally);

}  // namespace slip::gemma4
