// A row of the residual that a branch joins, in the registers of a block; whichever kernel does it,
// the bits are the same.
#pragma once

#include "kernels/cuda/branch.h"
#include "kernels/cuda/row_norm.cuh"

namespace slip {

// Slabs warp, warp + warps and so on of a row, kHeld of them or fewer.
template <int kHeld>
struct RowPart {
  float4 quads[kHeld];

  __device__ static int slab(int i) {
    return int(threadIdx.x) / kWarp + i * (int(blockDim.x) / kWarp);
  }
  __device__ static int64_t column(int i) {
    return int64_t(slab(i)) * kNormSlab + int(threadIdx.x) % kWarp * kQuad;
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
  __device__ __forceinline__ void leave_squares(float* of_slabs, int slabs) const {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const float sum = slab_squares(quads[i]);
      if (threadIdx.x % kWarp == 0 && slab(i) < slabs) of_slabs[slab(i)] = sum;
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

inline constexpr int kJoinNorms = 4;  // of a branch and the one beside it, of both, of the sum

// kMayHaveBeside: false spares the registers of a branch beside the first.
template <int kHeld, bool kMayHaveBeside = true>
class JoinedRow {
 public:
  using Part = RowPart<kHeld>;

  __device__ static int slabs_of(const BranchParams& p) {
    return int((p.dim + kNormSlab - 1) / kNormSlab);
  }

  // The whole block. `squares` (shared) has room for kJoinNorms floats per slab. Calls asked() when
  // the row is on its way.
  template <class Asked>
  __device__ __forceinline__ JoinedRow(const BranchParams& p, int row, float* squares,
                                       const Asked& asked)
      : p_(p), squares_(squares), at_(int64_t(row) * p.dim) {
    const int slabs = slabs_of(p);
    const bool two = kMayHaveBeside && p.beside;
    const auto inverse_of = [&](int norm) {
      return inverse_rms(row_squares(squares + norm * slabs, slabs), p.dim, p.eps);
    };
    // Nobody writes scales: the first one is asked for, others are brought close.
    Part scale;
    scale.load(two ? p.branch_scale : p.scale, p.dim);
    if (two) {
      Part::bring(p.beside_scale, p.dim);
      Part::bring(p.scale, p.dim);
    }
#pragma unroll 1
    for (int o = 0; o < p.output_count; ++o) Part::bring(p.outputs[o].scale, p.dim);
    wait_for_inputs();

    Part branch, beside{};
    branch.load(p.branch + at_, p.dim);
    if (two) beside.load(p.beside + at_, p.dim);
    sum_.load(p.residual + at_, p.dim);
    asked();
    if (two) {
      branch.leave_squares(squares, slabs);
      beside.leave_squares(squares + slabs, slabs);
      __syncthreads();
      branch.scale_by(inverse_of(0), scale);
      scale.load(p.beside_scale, p.dim);
      beside.scale_by(inverse_of(1), scale);
      scale.load(p.scale, p.dim);
      branch.add(beside);
    }
    branch.leave_squares(squares + 2 * slabs, slabs);
    __syncthreads();
    branch.scale_by(inverse_of(2), scale);
    sum_.add(branch);
    sum_.multiply(p.factor);
  }

  // The whole block: what makes outputs of the sum.
  __device__ __forceinline__ void find_norm() {
    const int slabs = slabs_of(p_);
    float* of_slabs = squares_ + (kJoinNorms - 1) * slabs;
    sum_.leave_squares(of_slabs, slabs);
    __syncthreads();
    inverse_ = inverse_rms(row_squares(of_slabs, slabs), p_.dim, p_.eps);
  }
  __device__ __forceinline__ Part output(int o) const {
    Part normed = sum_, scale;
    scale.load(p_.outputs[o].scale, p_.dim);
    normed.scale_by(inverse_, scale);
    normed.multiply(p_.outputs[o].factor);
    return normed;
  }

  __device__ __forceinline__ void store_sum() const { sum_.store(p_.sum + at_, p_.dim); }
  __device__ __forceinline__ void store_output(int o, const Part& output) const {
    output.store(p_.outputs[o].out + at_, p_.dim);
  }

  // The sum and all outputs, of which the block has the first: each by one of the blocks that have
  // this row.
  __device__ __forceinline__ void share_stores(const Part& first) const {
    const int block = int(blockIdx.x), blocks = int(gridDim.x);
    if (block == 0) store_sum();
    if (block == 1 % blocks) store_output(0, first);
#pragma unroll 1
    for (int o = 1; o < p_.output_count; ++o)
      if (block == (1 + o) % blocks) store_output(o, output(o));
  }

 private:
  const BranchParams& p_;
  float* squares_;
  int64_t at_;
  Part sum_;
  float inverse_ = 0;
};

}  // namespace slip
