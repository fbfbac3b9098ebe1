// A branch that joins the residual: what kernels that let it do so are told.
#pragma once

#include <optional>

#include "kernels/cuda/linear.h"
#include "kernels/ops.h"

namespace slip {

inline constexpr int kMostBranchOutputs = 3;

struct BranchParams {
  const float *branch, *beside;  // beside: null where there is none
  const float *branch_scale, *beside_scale, *scale;
  const float* residual;
  float* sum;  // may be the residual
  int64_t rows, dim;
  float eps, factor;
  struct Output {
    const float* scale;
    float* out;
    float factor;
  } outputs[kMostBranchOutputs];
  int32_t output_count;
};

// Nothing where the rows are such as no kernel here takes.
std::optional<BranchParams> branch_params(const AddBranchArgs& args);

// `rounded`: where the first output goes as projections take it.
void add_branch_rows(const Launcher& launcher, const BranchParams& branch,
                     const RoundedTo& rounded);

// The same on the way into weights that multiply the first output, for sums that do not replace
// the residual: every block reads it, and some write the sum and all outputs. Weights of int4 in
// groups of 128, and one row; and weights of floats, where there are few blocks.
bool joins_into_int4(const LinearInput& input, const LinearJobs& slabs, const LinearJobs& floats);
void join_into_int4(const Launcher& launcher, const LinearInput& input, const BranchParams& branch,
                    const LinearJobs& slabs);
bool joins_into_floats(const Launcher& launcher, const LinearInput& input, const LinearJobs& slabs,
                       const LinearJobs& floats);
void join_into_floats(const Launcher& launcher, const LinearInput& input,
                      const BranchParams& branch, const LinearJobs& floats);

}  // namespace slip
