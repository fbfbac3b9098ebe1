// The passes of a model, as steps that a backend may keep.
#pragma once

#include "base/function_ref.h"
#include "models/model.h"

namespace slip {

// Who runs, and the most rows it was made for.
struct PassOwner {
  Ops& ops;
  const void* owner;
  int64_t max_rows;
};

// Runs the operations of `body`, which depend on nothing but the step.
void run_pass(const PassOwner& owner, const Step& step, FunctionRef<void()> body);
void run_pass(const PassOwner& owner, const DraftStep& step, FunctionRef<void()> body);

}  // namespace slip
