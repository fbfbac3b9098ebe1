// The norms around a residual in one launch: a block per row, which stays in its registers.
#include <algorithm>

#include "kernels/cuda/branch.h"
#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/joined_row.cuh"
#include "kernels/cuda/rounded_rows.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

using gemv::form_of, gemv::Rounds;

constexpr int kMostWarps = 32;
constexpr int kMostHeld = 2;  // slabs of a warp

template <int kHeld, Rounds kRounds>
__global__ void __launch_bounds__(kMostWarps* kWarp)
    add_branch_kernel(const __grid_constant__ BranchParams p, std::byte* rounded) {
  __shared__ float squares[kJoinNorms * kMostHeld * kMostWarps];
  let_next_begin();
  JoinedRow<kHeld> row(p, int(blockIdx.x), squares, [] {});
  row.store_sum();
  if (p.output_count == 0) return;
  row.find_norm();
#pragma unroll 1
  for (int o = 0; o < p.output_count; ++o) {
    const RowPart<kHeld> output = row.output(o);
    row.store_output(o, output);
    if constexpr (kRounds != Rounds::no) {
      if (o > 0) continue;
      const int slabs = JoinedRow<kHeld>::slabs_of(p);
#pragma unroll
      for (int i = 0; i < kHeld; ++i)
        if (output.slab(i) < slabs)
          gemv::round_to<form_of(kRounds)>(rounded, output.quads[i], int(blockIdx.x),
                                           int(gridDim.x), output.slab(i), slabs);
    }
  }
}

template <Rounds kRounds>
auto kernel_for(int64_t slabs) {
  return slabs <= kMostWarps ? add_branch_kernel<1, kRounds>
                             : add_branch_kernel<kMostHeld, kRounds>;
}

}  // namespace

std::optional<BranchParams> branch_params(const AddBranchArgs& args) {
  check_shapes(args);
  const bool two = !args.beside.empty();
  BranchParams params{.branch = args.branch.f32(),
                      .beside = two ? args.beside.f32() : nullptr,
                      .branch_scale = two ? args.branch_scale.f32() : nullptr,
                      .beside_scale = two ? args.beside_scale.f32() : nullptr,
                      .scale = args.scale.f32(),
                      .residual = args.residual.f32(),
                      .sum = args.joined().f32(),
                      .rows = args.residual.shape[0],
                      .dim = args.residual.shape[1],
                      .eps = args.eps,
                      .factor = args.factor,
                      .outputs = {},
                      .output_count = int32_t(args.outputs.size())};
  const int64_t slabs = slab_count(params.dim);
  bool suits =
      slabs <= kMostHeld * kMostWarps && args.outputs.size() <= kMostBranchOutputs &&
      rows_of_quads(params.dim, {params.branch, params.beside, params.branch_scale,
                                 params.beside_scale, params.scale, params.residual, params.sum});
  for (size_t i = 0; suits && i < args.outputs.size(); ++i) {
    const NormOutput& output = args.outputs[i];
    params.outputs[i] = {output.scale.f32(), output.out.f32(), output.factor};
    suits = rows_of_quads(params.dim, {params.outputs[i].scale, params.outputs[i].out});
  }
  return suits ? std::optional(params) : std::nullopt;
}

void add_branch_rows(const Launcher& launcher, const BranchParams& branch,
                     const RoundedTo& rounded) {
  if (branch.rows == 0) return;
  const int64_t slabs = slab_count(branch.dim);
  const auto warps = unsigned(std::min<int64_t>(slabs, kMostWarps));
  const Rounds rounds = gemv::rounds_to(rounded);
  const auto kernel = rounds == Rounds::no            ? kernel_for<Rounds::no>(slabs)
                      : rounds == Rounds::to_integers ? kernel_for<Rounds::to_integers>(slabs)
                                                      : kernel_for<Rounds::to_halves>(slabs);
  launch(launcher, unsigned(branch.rows), warps * kWarp, 0, kernel, branch, rounded.memory);
}

void CudaOps::add_branch(const AddBranchArgs& args) {
  if (const std::optional<BranchParams> branch = branch_params(args))
    return add_branch_rows(launcher_, *branch, {});
  Ops::add_branch(args);
}

}  // namespace slip
