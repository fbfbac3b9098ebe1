// What a step must move and multiply: the bytes behind tokens per second.
#pragma once

#include "models/common/tally.h"
#include "models/gemma4/weights.h"

namespace slip::gemma4 {

struct CostOf {
  int64_t rows;
  int64_t context;  // positions behind the step
  const KvRecipe& kv;
};

// A pass of all layers and the head over rows of one sequence. The weights must be loaded.
StepCost step_cost(const Config& config, const Weights& weights, const CostOf& of);

// One layer of such a pass.
void add_layer(const Config& config, size_t index, const Layer& layer, Tally& tally);

}  // namespace slip::gemma4
