// The largest of many: what greedy choice and the confidence of drafts need of a row of logits.
#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/device/warp.cuh"
#include "kernels/cuda/peaks.h"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kThreads = 512;

// The first of the largest wins; the loser may still be the runner-up.
__device__ Peak better(const Peak& a, const Peak& b) {
  const bool first = a.value > b.value || (a.value == b.value && a.id < b.id);
  const Peak& winner = first ? a : b;
  const Peak& loser = first ? b : a;
  return {winner.id, winner.value, fmaxf(winner.runner_up, loser.value)};
}

__device__ Peak warp_better(Peak peak) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    const Peak other{__shfl_xor_sync(~0u, peak.id, offset),
                     __shfl_xor_sync(~0u, peak.value, offset),
                     __shfl_xor_sync(~0u, peak.runner_up, offset)};
    peak = better(peak, other);
  }
  return peak;
}

__global__ void __launch_bounds__(kThreads)
    peaks_of_parts(const float* x, int64_t width, Peak* parts) {
  __shared__ Peak warps[kThreads / kWarp];
  let_next_begin();
  wait_for_inputs();
  const float* row = x + blockIdx.y * width;
  const int64_t begin = width * blockIdx.x / kPeakParts,
                end = width * (blockIdx.x + 1) / kPeakParts;
  Peak peak{0x7fffffff, -INFINITY, -INFINITY};
#pragma unroll 4
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads)
    peak = better(peak, {int32_t(i), fmaxf(row[i], -INFINITY), -INFINITY});  // numbers alone
  peak = warp_better(peak);
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = peak;
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  const Peak none{0x7fffffff, -INFINITY, -INFINITY};
  peak = warp_better(threadIdx.x < kThreads / kWarp ? warps[threadIdx.x] : none);
  if (threadIdx.x == 0) parts[blockIdx.y * kPeakParts + blockIdx.x] = peak;
}

// `tokens` and `ids` may be null.
__global__ void best_of_parts(const Peak* parts, const int32_t* tokens, int32_t* ids, Peak* out) {
  let_next_begin();
  wait_for_inputs();
  Peak peak = warp_better(parts[blockIdx.x * kPeakParts + threadIdx.x]);
  if (threadIdx.x != 0) return;
  if (tokens) peak.id = tokens[peak.id];
  if (ids) ids[blockIdx.x] = peak.id;
  out[blockIdx.x] = peak;
}

}  // namespace

void CudaOps::peaks(const PeaksArgs& args) {
  const Dims dims = check_shapes(args);
  const auto rows = unsigned(dims["rows"]);
  auto* parts = reinterpret_cast<Peak*>(scratch(peaks_scratch_bytes(rows)));
  launch(launcher_, dim3(kPeakParts, rows), dim3(kThreads), 0, peaks_of_parts, args.x.f32(),
         dims["width"], parts);
  launch(launcher_, dim3(rows), dim3(kPeakParts), 0, best_of_parts, parts,
         args.tokens.empty() ? nullptr : args.tokens.i32(),
         args.ids.empty() ? nullptr : args.ids.i32(), reinterpret_cast<Peak*>(args.out.i32()));
}

}  // namespace slip
