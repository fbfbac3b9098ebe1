// Which matrices of an INT4 checkpoint an FP8 checkpoint of the same model can replace. INT4 files
// keep what suffers from four bits, such as shared experts, in 16; FP8 reads half of that and costs
// almost nothing.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/tensor_class.h"
#include "convert/tensor_source.h"

namespace slip {

// A 16-bit matrix that becomes FP8.
struct Replacement {
  std::string name;     // "....weight", as the INT4 checkpoint spells it
  SourceTensor weight;  // of the FP8 checkpoint
  SourceTensor scales;  // "weight_scale_inv"
  uint64_t bytes_before = 0;

  std::string scales_name() const { return name + "_scale_inv"; }
};

// Why matrices and vectors stay as they are.
enum class LeftBecause {
  int4_already,
  fp8_already,
  plain_in_both,
  absent_in_fp8,
  not_chosen,  // FP8 is there, but the class was not asked for
};
const char* name_of(LeftBecause reason);

struct HybridPlan {
  std::vector<Replacement> replacements;                       // in order of their names
  std::map<TensorClass, std::map<LeftBecause, int64_t>> left;  // matrices and vectors
  int64_t unused_fp8 = 0;  // tensors of the FP8 checkpoint that nothing was taken from

  uint64_t bytes_before() const;
  uint64_t bytes_after() const;
  std::map<TensorClass, int64_t> replaced() const;
};

// Names are compared without the prefixes in which repositories of one model differ. A shape that
// differs is an error: the two are not of the same model.
Result<HybridPlan> plan_hybrid(const Checkpoint& int4, TensorSource& fp8,
                               const std::set<TensorClass>& classes);

}  // namespace slip
