// Linear layers of few rows with weights in plain rows: one warp, one output.
#pragma once

#include "kernels/cuda/float_formats.cuh"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/quads.cuh"

namespace slip {

template <class Piece, bool kQuads>
__device__ __forceinline__ float dot(const float (&w)[Piece::kValues], const float* x,
                                     int64_t column, int64_t in) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < Piece::kValues; i += kQuad) {
    const float4 quad = load_quad<kQuads>(x, column + i, in);
    sum = __fmaf_rn(w[i], quad.x, sum);
    sum = __fmaf_rn(w[i + 1], quad.y, sum);
    sum = __fmaf_rn(w[i + 2], quad.z, sum);
    sum = __fmaf_rn(w[i + 3], quad.w, sum);
  }
  return sum;
}

template <class Piece, bool kQuads>
__device__ __forceinline__ void float_output(const LinearInput& input, const LinearJob& job,
                                             int64_t output, bool add) {
  constexpr int kAtOnce = 8;  // loads on their way
  constexpr int kRows = 4;    // that share them
  const int lane = int(threadIdx.x) % kWarp;
  const int64_t pieces = pieces_of_row<Piece>(input.in);
  const std::byte* weights = job.weight.values + output * pieces * 16;
  for (int64_t first = 0; first < input.rows; first += kRows) {
    const float* x = input.x + first * input.in;
    const int rows = int(min(int64_t(kRows), input.rows - first));
    float sums[kRows] = {};
    for (int64_t begin = lane; begin < pieces; begin += kAtOnce * kWarp) {
      uint4 loaded[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int64_t piece = begin + i * kWarp;
        loaded[i] = piece < pieces ? load_stream(weights + piece * 16) : make_uint4(0, 0, 0, 0);
      }
      wait_for_inputs();  // after the first loads; later it is no wait
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        float w[Piece::kValues];
        Piece::widen(loaded[i], w);
        const int64_t column = (begin + i * kWarp) * Piece::kValues;
#pragma unroll
        for (int r = 0; r < kRows; ++r)
          if (r < rows) sums[r] += dot<Piece, kQuads>(w, x + r * input.in, column, input.in);
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r >= rows) break;
      const float sum = warp_sum(sums[r]);
      float* out = job.out + (first + r) * job.weight.out + output;
      if (lane == 0) *out = add ? *out + sum : sum;
    }
  }
}

// The share of this block, one of the first `blocks` of the grid.
template <bool kQuads>
__device__ __forceinline__ void float_outputs(const LinearInput& input, const LinearJobs& jobs,
                                              int blocks, bool add) {
  const int warps = int(blockDim.x) / kWarp, warp = int(threadIdx.x) / kWarp;
  int job = 0;
  for (int unit = int(blockIdx.x) * warps + warp; unit < jobs.units; unit += blocks * warps) {
    while (unit >= jobs.list[job].end) ++job;
    const LinearJob& current = jobs.list[job];
    const int output = unit - (job == 0 ? 0 : jobs.list[job - 1].end);
    if (current.weight.format == WeightFormat::f32)
      float_output<F32Piece, kQuads>(input, current, output, add);
    else if (current.weight.format == WeightFormat::bf16)
      float_output<Bf16Piece, kQuads>(input, current, output, add);
    else
      float_output<F16Piece, kQuads>(input, current, output, add);
  }
  wait_for_inputs();
}

}  // namespace slip
