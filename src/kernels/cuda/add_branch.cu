// The norms around a residual in one launch: a block per row, which stays in its registers.
#include <algorithm>

#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/row_norm.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kMostWarps = 32;
constexpr int kMostHeld = 2;  // slabs of a warp
constexpr int kMostOutputs = 3;

struct BranchParams {
  const float *branch, *beside;  // beside: null where there is none
  const float *branch_scale, *beside_scale, *scale;
  float* residual;
  int64_t dim;
  float eps, factor;
  struct Output {
    const float* scale;
    float* out;
    float factor;
  } outputs[kMostOutputs];
  int32_t output_count;
};

// Slabs warp, warp + warps and so on of a row.
template <int kHeld>
struct RowPart {
  float4 quads[kHeld];

  __device__ static int64_t column(int i) {
    const int warp = int(threadIdx.x) / kWarp, warps = int(blockDim.x) / kWarp;
    return int64_t(warp + i * warps) * kNormSlab + int(threadIdx.x) % kWarp * kQuad;
  }

  __device__ __forceinline__ static void bring(const float* row, int64_t dim) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (column(i) < dim) bring_line(row + column(i));
  }
  __device__ __forceinline__ void load(const float* row, int64_t dim) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) quads[i] = load_quad<true>(row, column(i), dim);
  }
  __device__ __forceinline__ void store(float* row, int64_t dim) const {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) store_quad<true>(row, column(i), dim, quads[i]);
  }
  // Known to the block after a barrier.
  __device__ __forceinline__ void leave_squares(float* of_slabs) const {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const float sum = slab_squares(quads[i]);
      if (threadIdx.x % kWarp == 0) of_slabs[column(i) / kNormSlab] = sum;
    }
  }
  __device__ __forceinline__ void scale_by(float inverse, const RowPart& scale) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) quads[i] = scaled(quads[i], inverse, scale.quads[i]);
  }
  __device__ __forceinline__ void add(const RowPart& other) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) quads[i] = sum_of(quads[i], other.quads[i]);
  }
  __device__ __forceinline__ void multiply(float factor) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) quads[i] = product_of(factor, quads[i]);
  }
};

template <int kHeld>
__global__ void __launch_bounds__(kMostWarps* kWarp)
    add_branch_kernel(const __grid_constant__ BranchParams p) {
  using Part = RowPart<kHeld>;
  __shared__ float squares[4][kMostHeld * kMostWarps];
  const int slabs = int((p.dim + kNormSlab - 1) / kNormSlab);
  const auto inverse_of = [&](const float* of_slabs) {
    return inverse_rms(row_squares(of_slabs, slabs), p.dim, p.eps);
  };
  // Nobody writes scales: the first one is asked for, others are brought close.
  Part scale;
  scale.load(p.beside ? p.branch_scale : p.scale, p.dim);
  if (p.beside) {
    Part::bring(p.beside_scale, p.dim);
    Part::bring(p.scale, p.dim);
  }
#pragma unroll 1
  for (int o = 0; o < p.output_count; ++o) Part::bring(p.outputs[o].scale, p.dim);
  let_next_begin();
  wait_for_inputs();

  const int64_t row = blockIdx.x * p.dim;
  Part branch, beside, residual;
  branch.load(p.branch + row, p.dim);
  if (p.beside) beside.load(p.beside + row, p.dim);
  residual.load(p.residual + row, p.dim);
  if (p.beside) {
    branch.leave_squares(squares[0]);
    beside.leave_squares(squares[1]);
    __syncthreads();
    branch.scale_by(inverse_of(squares[0]), scale);
    scale.load(p.beside_scale, p.dim);
    beside.scale_by(inverse_of(squares[1]), scale);
    scale.load(p.scale, p.dim);
    branch.add(beside);
  }
  branch.leave_squares(squares[2]);
  __syncthreads();
  branch.scale_by(inverse_of(squares[2]), scale);
  residual.add(branch);
  residual.multiply(p.factor);
  residual.store(p.residual + row, p.dim);

  if (p.output_count == 0) return;
  residual.leave_squares(squares[3]);
  __syncthreads();
  const float inverse = inverse_of(squares[3]);
#pragma unroll 1
  for (int o = 0; o < p.output_count; ++o) {
    Part normed = residual;
    scale.load(p.outputs[o].scale, p.dim);
    normed.scale_by(inverse, scale);
    normed.multiply(p.outputs[o].factor);
    normed.store(p.outputs[o].out + row, p.dim);
  }
}

}  // namespace

void CudaOps::add_branch(const AddBranchArgs& args) {
  const int64_t rows = args.residual.shape[0], dim = args.residual.shape[1];
  const bool two = !args.beside.empty();
  BranchParams params{.branch = args.branch.f32(),
                      .beside = two ? args.beside.f32() : nullptr,
                      .branch_scale = two ? args.branch_scale.f32() : nullptr,
                      .beside_scale = two ? args.beside_scale.f32() : nullptr,
                      .scale = args.scale.f32(),
                      .residual = args.residual.f32(),
                      .dim = dim,
                      .eps = args.eps,
                      .factor = args.factor,
                      .outputs = {},
                      .output_count = int32_t(args.outputs.size())};
  const int64_t slabs = (dim + kNormSlab - 1) / kNormSlab;
  bool suits = slabs <= kMostHeld * kMostWarps && args.outputs.size() <= kMostOutputs &&
               rows_of_quads(dim, {params.branch, params.beside, params.branch_scale,
                                   params.beside_scale, params.scale, params.residual});
  for (size_t i = 0; suits && i < args.outputs.size(); ++i) {
    const NormOutput& output = args.outputs[i];
    params.outputs[i] = {output.scale.f32(), output.out.f32(), output.factor};
    suits = rows_of_quads(dim, {params.outputs[i].scale, params.outputs[i].out});
  }
  if (!suits) return Ops::add_branch(args);
  check_shapes(args);
  if (rows == 0) return;
  const auto warps = unsigned(std::min<int64_t>(slabs, kMostWarps));
  launch(launcher_, unsigned(rows), warps * kWarp, 0,
         slabs <= kMostWarps ? add_branch_kernel<1> : add_branch_kernel<kMostHeld>, params);
}

}  // namespace slip
