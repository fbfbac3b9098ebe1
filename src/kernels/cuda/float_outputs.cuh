// Linear layers of few rows with weights in plain rows: a block takes two outputs at a time, so
// that they share the inputs.
//
// A row is cut into slabs of 128, four values of which a lane has, and the slabs are dealt to
// kFloatParts parts. Each part is summed by itself, then all in order: a block of 16 warps has one
// part per warp, one of 8 has two, and both come to the same bits.
#pragma once

#include "kernels/cuda/float_formats.cuh"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/quads.cuh"

namespace slip {

inline constexpr int kFloatWarps = 8;
inline constexpr int kFloatThreads = kFloatWarps * kWarp;
inline constexpr int kFloatParts = 16;
inline constexpr int kFloatSlab = kWarp * kQuad;

// What warps have of a row's outputs, in shared memory.
using FloatPartials = float[kFloatParts][kFloatOutputs];

// sum + w x, in order.
__device__ __forceinline__ float float_products(float4 w, float4 x, float sum) {
  sum = __fmaf_rn(w.x, x.x, sum);
  sum = __fmaf_rn(w.y, x.y, sum);
  sum = __fmaf_rn(w.z, x.z, sum);
  return __fmaf_rn(w.w, x.w, sum);
}

// Two outputs, kSlabs slabs of a warp at a time.
template <class Row, int kWarps, int kSlabs>
class FloatPair {
 public:
  static constexpr int kStride = kWarps * kSlabs;      // slabs that a block takes at a time
  static constexpr int kParts = kFloatParts / kWarps;  // of a warp

  // A lane's, of one row.
  struct Sums {
    float of[kParts][kFloatOutputs] = {};
  };

  // Of all weights' pairs this one. Asks for the first weights, which may be before the input is
  // there.
  __device__ FloatPair(const LinearJobs& jobs, int pair, int in) : in_(in) {
    int job = 0;
#pragma unroll 1
    while (pair >= jobs.list[job].end) ++job;
    job_ = &jobs.list[job];
    first_ = int64_t(pair - (job == 0 ? 0 : jobs.list[job - 1].end)) * kFloatOutputs;
    ask(0);
  }

  // The lane's columns of slab i of those from `begin` on.
  __device__ static int column(int begin, int i) {
    return (begin + i * kWarps + int(threadIdx.x) / kWarp) * kFloatSlab +
           int(threadIdx.x) % kWarp * kQuad;
  }

  // Slabs from `begin` on, which is a multiple of kFloatParts.
  __device__ __forceinline__ void ask(int begin) {
#pragma unroll
    for (int o = 0; o < kFloatOutputs; ++o) {  // one past the last is not written
      const int64_t output = min(first_ + o, job_->weight.out - 1);
      const std::byte* row = job_->weight.values + output * float_row_bytes<Row>(in_);
#pragma unroll
      for (int i = 0; i < kSlabs; ++i) {
        const int at = column(begin, i);
        loaded_[i][o] = at < in_ ? Row::load(row + at * (sizeof(Quad) / kQuad)) : Quad{};
      }
    }
  }

  // x: what belongs to the weights that were asked for last.
  __device__ __forceinline__ void add(const float4 (&x)[kSlabs], Sums& sums) const {
#pragma unroll
    for (int i = 0; i < kSlabs; ++i)
#pragma unroll
      for (int o = 0; o < kFloatOutputs; ++o) {
        float& sum = sums.of[i % kParts][o];
        sum = float_products(Row::widen(loaded_[i][o]), x[i], sum);
      }
  }

  // The whole block; then a barrier, and any kFloatOutputs threads finish.
  __device__ __forceinline__ void put(const Sums& sums, FloatPartials& partials) const {
    const int warp = int(threadIdx.x) / kWarp;
#pragma unroll
    for (int part = 0; part < kParts; ++part)
#pragma unroll
      for (int o = 0; o < kFloatOutputs; ++o) {
        const float sum = warp_sum(sums.of[part][o]);
        if (threadIdx.x % kWarp == 0) partials[part * kWarps + warp][o] = sum;
      }
  }
  __device__ __forceinline__ void finish(const FloatPartials& partials, int which, int64_t row,
                                         bool add) const {
    const int64_t output = first_ + which;
    if (which >= kFloatOutputs || output >= job_->weight.out) return;
    float sum = 0;
#pragma unroll
    for (int part = 0; part < kFloatParts; ++part) sum += partials[part][which];
    float* out = job_->out + row * job_->weight.out + output;
    *out = add ? *out + sum : sum;
  }

 private:
  using Quad = typename Row::Quad;

  const LinearJob* job_;
  int64_t first_;
  int in_;
  Quad loaded_[kSlabs][kFloatOutputs];
};

}  // namespace slip
