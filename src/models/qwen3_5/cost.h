// What a step must move and multiply: the bytes behind tokens per second.
#pragma once

#include "models/model.h"
#include "models/qwen3_5/weights.h"

namespace slip::qwen3_5 {

// The weights must be loaded.
struct CostOf {
  const Config& config;
  const Weights& weights;
  int64_t context = 0;  // positions behind the step
  const KvRecipe& kv;
};

// A pass of all layers and the head over `rows` tokens of one sequence.
StepCost step_cost(const CostOf& of, int64_t rows);

// A pass of the MTP layer over one token, and what it scores of the head.
StepCost draft_cost(const CostOf& of);

}  // namespace slip::qwen3_5
