// The INT4+FP8 hybrid of two checkpoints of one model. By default an overlay: the INT4 files are
// linked as they are, one more file holds the FP8 matrices, and a new index points to them.
#pragma once

#include <filesystem>
#include <functional>

#include "convert/hybrid_plan.h"
#include "convert/output_folder.h"

namespace slip {

// Bytes done and in all; false stops.
using ConvertProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Of a conversion that was interrupted.
inline constexpr const char* kInterrupted = "interrupted; run it again to go on";

struct HybridRequest {
  const Checkpoint& int4;
  TensorSource& fp8;
  const HybridPlan& plan;
  std::set<TensorClass> classes;
  std::filesystem::path out;
  bool full = false;  // rewrite the files that hold replaced matrices: no tensor is there twice
  LinkWay link = LinkWay::automatic;
};

struct HybridResult {
  bool was_there = false;  // the folder holds it already; nothing was written
  uint64_t written = 0;    // bytes of new weights
  uint64_t copied = 0;     // bytes that could not be linked
};

// The file of an overlay; behind the shards by name, so that readers of all files in order end with
// its tensors.
inline constexpr std::string_view kHybridFile = "model-hybrid-fp8.safetensors";

Result<HybridResult> make_hybrid(const HybridRequest& request, const ConvertProgress& progress);

}  // namespace slip
