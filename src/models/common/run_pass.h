// The passes of a model, as steps that a backend may keep.
#pragma once

#include "base/function_ref.h"
#include "models/drafter.h"

namespace slip {

// Who runs, and the most rows it was made for.
struct PassOwner {
  Ops& ops;
  const void* owner;
  int64_t max_rows;
};

// Runs the operations of `body`, which depend on nothing but the step.
void run_pass(const PassOwner& owner, const Step& step, FunctionRef<void()> body);
// The same for each of several, which a backend keeps as one. What the later ones read and write
// must follow from the first.
void run_passes(const PassOwner& owner, std::span<const DraftStep> steps,
                FunctionRef<void(const DraftStep&)> body);

}  // namespace slip
