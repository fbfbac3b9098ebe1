#include <utility>
#include <vector>

#include "kernels/cuda/branch.h"
#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/quads.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

LinearInput linear_input(const View& x) {
  const int64_t in = x.shape[1];
  return {.x = x.f32(), .rows = x.shape[0], .in = in, .quads = rows_of_quads(in, {x.data})};
}

// By a launch of its own, instead of by every block. A single row is rounded while its weights are
// on their way.
bool better_rounded_once(const LinearInput& input) {
  constexpr int64_t kManySlabs = 96;  // 6 for every warp of a block
  return input.rows > 1 && input.rows * slab_count(input.in) > kManySlabs;
}

// Weights of a call, as kernels take them.
struct Jobs {
  LinearJobs slabs, floats;

  Jobs(const View& x, std::span<const LinearOutput> outputs) {
    check(outputs.size() <= kMaxLinears, "linears: more than ", kMaxLinears, " weights");
    for (const LinearOutput& output : outputs) {
      check_shapes(LinearArgs{.x = x, .weight = output.weight, .out = output.out});
      const DeviceWeight weight = device_weight(output.weight);
      if (in_slabs(weight.format))
        slabs.add(weight, output.out.f32(), tile_count(weight.out));
      else
        floats.add(weight, output.out.f32(), (weight.out + kFloatOutputs - 1) / kFloatOutputs);
    }
  }
};

}  // namespace

void CudaOps::linear(const LinearArgs& args) {
  const LinearOutput output{args.weight, args.out};
  run_linears(args.x, {&output, 1}, args.add);
}

void CudaOps::linears(const LinearsArgs& args) { run_linears(args.x, args.outputs, false); }

std::byte* CudaOps::linear_scratch(LinearInput& input, const LinearJobs& slabs) {
  const size_t rounded = linear_rounded_bytes(input.rows, input.in);
  std::byte* memory = scratch(rounded + part_sums_bytes(input.rows, input.in, slabs.units));
  input.parts = {.sums = reinterpret_cast<float*>(memory + rounded), .counters = counters()};
  return memory;
}

void CudaOps::run_linears(const View& x, std::span<const LinearOutput> outputs, bool add) {
  const Jobs jobs(x, outputs);
  LinearInput input = linear_input(x);
  if (input.rows == 0) return;
  if (input.rows <= kFewLinearRows) {
    if (linear_rows_at_once(launcher_, input, jobs.slabs) < input.rows)
      return run_in_halves(x, outputs, add);
    std::byte* rounded = linear_scratch(input, jobs.slabs);
    std::optional<RowForm> form;
    if (linear_needs_rounded(input, jobs.slabs))
      form = RowForm::integers;
    else if (better_rounded_once(input))
      form = linear_takes_rounded(launcher_, input, jobs.slabs);
    if (form) {
      round_few_rows(launcher_, {.x = input.x,
                                 .up = nullptr,
                                 .rounded = {rounded, *form},
                                 .rows = int(input.rows),
                                 .slabs = int(slab_count(input.in)),
                                 .quads = input.quads});
      input.rounded = rounded;
    }
    return linear_few_rows(launcher_, input, {}, jobs.slabs, jobs.floats, add);
  }

  if (jobs.slabs.count > 0) {
    const size_t bytes = rounded_rows_bytes(input.rows, input.in);
    std::byte* rounded = scratch(bytes + many_rows_sums_bytes(launcher_));
    auto* part_sums = reinterpret_cast<float*>(rounded + bytes);
    round_rows(launcher_, input, rounded);
    for (int i = 0; i < jobs.slabs.count; ++i)
      linear_many_rows(launcher_, rounded, part_sums, input.rows, jobs.slabs.list[i].weight,
                       jobs.slabs.list[i].out, add);
  }
  for (int i = 0; i < jobs.floats.count; ++i)
    linear_floats_many_rows(launcher_, input, jobs.floats.list[i].weight, jobs.floats.list[i].out,
                            add);
}

void CudaOps::run_in_halves(const View& x, std::span<const LinearOutput> outputs, bool add) {
  const int64_t rows = x.shape[0], half = (rows + 1) / 2;
  for (const auto& [first, count] : {std::pair(int64_t{0}, half), std::pair(half, rows - half)}) {
    std::vector<LinearOutput> of_half;  // made to record a step
    for (const LinearOutput& output : outputs)
      of_half.push_back({output.weight, output.out.slice(first, count)});
    run_linears(x.slice(first, count), of_half, add);
  }
}

void CudaOps::norm_linears(const NormLinearsArgs& args) {
  const RmsNormArgs& norm = args.norm;
  check_shapes(norm);
  const Jobs jobs(norm.x, args.outputs);
  LinearInput input = linear_input(norm.x);
  const LinearNorm on_the_way{.scale = norm.scale.empty() ? nullptr : norm.scale.f32(),
                              .out = norm.out.f32(),
                              .eps = norm.eps};
  input.quads = rows_of_quads(input.in, {input.x, on_the_way.scale, on_the_way.out});
  // In place, a block would overwrite what others still read.
  const bool plain = norm.out.data != norm.x.data && !norm.add && norm.factor == 1;
  if (jobs.slabs.count == 0) {
    if (!plain || !norms_floats(input, jobs.floats)) return Ops::norm_linears(args);
    return norm_into_floats(launcher_, input, on_the_way, jobs.floats);
  }
  if (input.rows == 1) {
    if (!plain || !input.quads || slab_count(input.in) > kMostNormedSlabs)
      return Ops::norm_linears(args);
    return linear_few_rows(launcher_, input, on_the_way, jobs.slabs, jobs.floats, false);
  }
  // Several are better normed once than by every block.
  input.x = norm.out.f32();
  const std::optional<RowForm> form = linear_takes_rounded(launcher_, input, jobs.slabs);
  if (!form) return Ops::norm_linears(args);
  const RoundedTo rounded{linear_scratch(input, jobs.slabs), *form};
  norm_and_round(norm, rounded);
  input.rounded = rounded.memory;
  linear_few_rows(launcher_, input, {}, jobs.slabs, jobs.floats, false);
}

void CudaOps::add_branch_linears(const AddBranchLinearsArgs& args) {
  const AddBranchArgs& arguments = args.branch;
  check(!arguments.outputs.empty(), "add_branch_linears: a branch without outputs");
  const std::optional<BranchParams> branch = branch_params(arguments);
  const View& x = arguments.outputs.front().out;
  const Jobs jobs(x, args.outputs);
  LinearInput input = linear_input(x);
  if (!branch || input.rows == 0 || input.rows > kFewLinearRows)
    return Ops::add_branch_linears(args);
  // In place, a block would overwrite what others still read.
  const bool apart = branch->sum != branch->residual;
  if (apart && joins_into_floats(launcher_, input, jobs.slabs, jobs.floats))
    return join_into_floats(launcher_, input, *branch, jobs.floats);
  if (apart && joins_into_int4(input, jobs.slabs, jobs.floats))
    return join_into_int4(launcher_, input, *branch, jobs.slabs);
  const std::optional<RowForm> form = linear_takes_rounded(launcher_, input, jobs.slabs);
  if (input.rows == 1 || !form) return Ops::add_branch_linears(args);
  // Several are better joined once than by every block.
  const RoundedTo rounded{linear_scratch(input, jobs.slabs), *form};
  add_branch_rows(launcher_, *branch, rounded);
  input.rounded = rounded.memory;
  linear_few_rows(launcher_, input, {}, jobs.slabs, jobs.floats, false);
}

}  // namespace slip
