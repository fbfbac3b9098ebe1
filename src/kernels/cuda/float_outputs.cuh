// Linear layers of few rows with weights in plain rows: a block takes two outputs at a time, so
// that they share the inputs, and asks for all it needs at once.
#pragma once

#include "kernels/cuda/float_formats.cuh"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/quads.cuh"

namespace slip {

inline constexpr int kFloatWarps = 8;
inline constexpr int kFloatThreads = kFloatWarps * kWarp;

// The most shared memory that float_outputs() has, of all formats.
inline constexpr int kFloatSharedBytes = 2048;

// A barrier of the first kFloatThreads of a block, which may have more.
__device__ __forceinline__ void float_barrier() {
  asm volatile("bar.sync 1, %0;" ::"n"(kFloatThreads) : "memory");
}

template <class Piece>
__device__ __forceinline__ float dot(const float (&w)[Piece::kValues],
                                     const float4 (&x)[Piece::kValues / kQuad], float sum) {
#pragma unroll
  for (int i = 0; i < Piece::kValues / kQuad; ++i) {
    sum = __fmaf_rn(w[4 * i], x[i].x, sum);
    sum = __fmaf_rn(w[4 * i + 1], x[i].y, sum);
    sum = __fmaf_rn(w[4 * i + 2], x[i].z, sum);
    sum = __fmaf_rn(w[4 * i + 3], x[i].w, sum);
  }
  return sum;
}

// Outputs [first, first + kFloatOutputs) of `rows` <= kRows rows.
template <class Piece, bool kQuads, int kRows>
__device__ __forceinline__ void float_outputs_of(const LinearInput& input, const LinearJob& job,
                                                 int64_t first, int64_t first_row, int rows,
                                                 bool add) {
  constexpr int kPieces = 2;  // of an output and thread, on their way
  constexpr int kPieceQuads = Piece::kValues / kQuad;
  const int pieces = int(pieces_of_row<Piece>(input.in));
  const float* x = input.x + first_row * input.in;
  const std::byte* weights[kFloatOutputs];
#pragma unroll
  for (int o = 0; o < kFloatOutputs; ++o)  // one past the last is not written
    weights[o] = job.weight.values + min(first + o, job.weight.out - 1) * (pieces * int64_t(16));

  float sums[kFloatOutputs][kRows] = {};
  for (int begin = int(threadIdx.x); begin < pieces; begin += kPieces * kFloatThreads) {
    uint4 loaded[kPieces][kFloatOutputs];
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      const int piece = begin + p * kFloatThreads;
#pragma unroll
      for (int o = 0; o < kFloatOutputs; ++o)
        loaded[p][o] =
            piece < pieces ? load_stream(weights[o] + piece * 16) : make_uint4(0, 0, 0, 0);
    }
    wait_for_inputs();  // after the first loads; later it is no wait
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      float4 quads[kRows][kPieceQuads];
#pragma unroll
      for (int r = 0; r < kRows; ++r)
#pragma unroll
        for (int i = 0; i < kPieceQuads; ++i)
          quads[r][i] =
              load_quad<kQuads>(x + min(r, rows - 1) * input.in,
                                (begin + p * kFloatThreads) * Piece::kValues + i * kQuad, input.in);
#pragma unroll
      for (int o = 0; o < kFloatOutputs; ++o) {
        float w[Piece::kValues];
        Piece::widen(loaded[p][o], w);
#pragma unroll
        for (int r = 0; r < kRows; ++r) sums[o][r] = dot<Piece>(w, quads[r], sums[o][r]);
      }
    }
  }
  wait_for_inputs();  // a thread may have had no piece

  __shared__ float partials[kFloatWarps][kRows][kFloatOutputs];
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int o = 0; o < kFloatOutputs; ++o) {
      const float sum = warp_sum(sums[o][r]);
      if (lane == 0) partials[warp][r][o] = sum;
    }
  float_barrier();
  const int row = int(threadIdx.x) / kFloatOutputs, o = int(threadIdx.x) % kFloatOutputs;
  if (row < rows && first + o < job.weight.out) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kFloatWarps; ++w) sum += partials[w][row][o];
    float* out = job.out + (first_row + row) * job.weight.out + first + o;
    *out = add ? *out + sum : sum;
  }
  float_barrier();  // before the next write their sums
}

template <class Piece, bool kQuads, int kRows>
__device__ __forceinline__ void float_outputs_of(const LinearInput& input, const LinearJob& job,
                                                 int64_t first, bool add) {
  if (input.rows == 1) return float_outputs_of<Piece, kQuads, 1>(input, job, first, 0, 1, add);
  for (int64_t row = 0; row < input.rows; row += kRows)
    float_outputs_of<Piece, kQuads, kRows>(input, job, first, row,
                                           int(min(int64_t(kRows), input.rows - row)), add);
}

// The share of block `block` of `blocks`, for its first kFloatThreads; kRows: that share loads.
template <bool kQuads, int kRows>
__device__ __forceinline__ void float_outputs(const LinearInput& input, const LinearJobs& jobs,
                                              int block, int blocks, bool add) {
  int job = 0;
  for (int unit = block; unit < jobs.units; unit += blocks) {
    while (unit >= jobs.list[job].end) ++job;
    const LinearJob& current = jobs.list[job];
    const int64_t first = int64_t(unit - (job == 0 ? 0 : jobs.list[job - 1].end)) * kFloatOutputs;
    if (current.weight.format == WeightFormat::bf16)
      float_outputs_of<Bf16Piece, kQuads, kRows>(input, current, first, add);
    else if (current.weight.format == WeightFormat::f16)
      float_outputs_of<F16Piece, kQuads, kRows>(input, current, first, add);
    else
      float_outputs_of<F32Piece, kQuads, kRows>(input, current, first, add);
  }
}

}  // namespace slip
