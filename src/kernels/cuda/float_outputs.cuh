// Linear layers of few rows with weights in plain rows: a block takes two outputs of one row at a
// time, so that they share the inputs, and asks for all it needs at once.
//
// Little code: what a step runs through but once is waited for like any other memory.
#pragma once

#include "kernels/cuda/float_formats.cuh"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/row_norm.cuh"

namespace slip {

inline constexpr int kFloatWarps = 8;
inline constexpr int kFloatThreads = kFloatWarps * kWarp;

inline constexpr int kMostFloatGroups = 2;  // of a block, kFloatThreads each

// A barrier of one group.
__device__ __forceinline__ int float_group() { return int(threadIdx.x) / kFloatThreads; }
__device__ __forceinline__ void float_barrier() {
  if (float_group() == 0)
    asm volatile("bar.sync 1, %0;" ::"n"(kFloatThreads) : "memory");
  else
    asm volatile("bar.sync 2, %0;" ::"n"(kFloatThreads) : "memory");
}

// Two outputs of one row, by a group of threads.
template <class Piece, bool kQuads>
class FloatPair {
 public:
  // Asks for the first weights, which may be before the input is there. Units are the pairs of all
  // weights, row after row.
  __device__ FloatPair(const LinearInput& input, const LinearJobs& jobs, int unit)
      : input_(input), row_(unit / jobs.units) {
    const int pair = unit % jobs.units;
    int job = 0;
#pragma unroll 1
    while (pair >= jobs.list[job].end) ++job;
    job_ = &jobs.list[job];
    first_ = int64_t(pair - (job == 0 ? 0 : jobs.list[job - 1].end)) * kFloatOutputs;
    ask(0);
  }

  // `inverse`: 1 / rms of the row where it is to be normed.
  __device__ __forceinline__ void finish(const LinearNorm& norm, float inverse, bool add) {
    const float* x = input_.x + row_ * input_.in;
    float sums[kFloatOutputs] = {};
#pragma unroll 1
    for (int begin = 0;;) {
      float4 quads[kPieces][kPieceQuads];
#pragma unroll
      for (int p = 0; p < kPieces; ++p)
#pragma unroll
        for (int i = 0; i < kPieceQuads; ++i)
          quads[p][i] = load_quad<kQuads>(x, column(begin, p) + i * kQuad, input_.in);
      if (norm) apply(norm, begin, inverse, quads);
#pragma unroll
      for (int p = 0; p < kPieces; ++p)
#pragma unroll
        for (int o = 0; o < kFloatOutputs; ++o) {
          float w[Piece::kValues];
          Piece::widen(loaded_[p][o], w);
          sums[o] = dot(w, quads[p], sums[o]);
        }
      begin += kPieces * kFloatThreads;
      if (begin >= pieces()) break;
      ask(begin);
    }

    __shared__ float all_partials[kMostFloatGroups][kFloatWarps][kFloatOutputs];
    auto& partials = all_partials[float_group()];
    const int warp = float_thread() / kWarp, lane = float_thread() % kWarp;
#pragma unroll
    for (int o = 0; o < kFloatOutputs; ++o) {
      const float sum = warp_sum(sums[o]);
      if (lane == 0) partials[warp][o] = sum;
    }
    float_barrier();
    const int64_t output = first_ + float_thread();
    if (float_thread() < kFloatOutputs && output < job_->weight.out) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < kFloatWarps; ++w) sum += partials[w][float_thread()];
      float* out = job_->out + row_ * job_->weight.out + output;
      *out = add ? *out + sum : sum;
    }
    float_barrier();  // before the next write their sums
  }

 private:
  static constexpr int kPieces = 2;  // of an output and thread, on their way
  static constexpr int kPieceQuads = Piece::kValues / kQuad;

  __device__ static int float_thread() { return int(threadIdx.x) % kFloatThreads; }
  __device__ int pieces() const { return int(pieces_of_row<Piece>(input_.in)); }
  __device__ static int64_t column(int begin, int p) {
    return int64_t(begin + p * kFloatThreads + float_thread()) * Piece::kValues;
  }

  __device__ __forceinline__ void ask(int begin) {
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      const int piece = begin + p * kFloatThreads + float_thread();
#pragma unroll
      for (int o = 0; o < kFloatOutputs; ++o) {  // one past the last is not written
        const int64_t output = min(first_ + o, job_->weight.out - 1);
        const std::byte* from = job_->weight.values + (output * pieces() + piece) * 16;
        loaded_[p][o] = piece < pieces() ? load_stream(from) : make_uint4(0, 0, 0, 0);
      }
    }
  }

  __device__ __forceinline__ void apply(const LinearNorm& norm, int begin, float inverse,
                                        float4 (&quads)[kPieces][kPieceQuads]) const {
#pragma unroll
    for (int p = 0; p < kPieces; ++p)
#pragma unroll
      for (int i = 0; i < kPieceQuads; ++i) {
        const int64_t at = column(begin, p) + i * kQuad;
        quads[p][i] = scaled(
            quads[p][i], inverse,
            norm.scale ? load_quad<true>(norm.scale, at, input_.in) : make_float4(1, 1, 1, 1));
      }
  }

  __device__ static float dot(const float (&w)[Piece::kValues], const float4 (&x)[kPieceQuads],
                              float sum) {
#pragma unroll
    for (int i = 0; i < kPieceQuads; ++i) {
      sum = __fmaf_rn(w[4 * i], x[i].x, sum);
      sum = __fmaf_rn(w[4 * i + 1], x[i].y, sum);
      sum = __fmaf_rn(w[4 * i + 2], x[i].z, sum);
      sum = __fmaf_rn(w[4 * i + 3], x[i].w, sum);
    }
    return sum;
  }

  const LinearInput& input_;
  const LinearJob* job_;
  int64_t row_, first_;
  uint4 loaded_[kPieces][kFloatOutputs];
};

}  // namespace slip
