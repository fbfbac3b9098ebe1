#include "kernels/cuda/choice.cuh"
#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kRowsPerBlock = 4;
// Clusters of a head are chosen like experts. A warp chooses among kShare of so many, then one of
// them among what all have chosen.
constexpr int kSharePerLane = 8, kShare = kSharePerLane * kWarp;
constexpr int kMostShares = kSharePerLane;
constexpr int64_t kMostRouted = kMostShares * kShare;

template <int kPerLane>
__global__ void __launch_bounds__(kRowsPerBlock* kWarp)
    route_kernel(const float* logits, int rows, int experts, int top_k, bool quads, int32_t* ids,
                 float* weights, const float* scales) {
  let_next_begin();
  wait_for_inputs();
  const int row = int(blockIdx.x) * kRowsPerBlock + int(threadIdx.x) / kWarp;
  if (row >= rows) return;
  const Choice<kPerLane> choice(logits + int64_t(row) * experts, experts, top_k, quads);
  const float weight = choice.weight(top_k, scales);
  const int lane = int(threadIdx.x) % kWarp;
  if (lane >= top_k) return;
  ids[int64_t(row) * top_k + lane] = choice.expert;
  weights[int64_t(row) * top_k + lane] = weight;
}

// A block per row.
__global__ void __launch_bounds__(kMostShares* kWarp)
    route_many_kernel(const float* logits, int experts, int top_k, bool quads, int32_t* ids,
                      float* weights, const float* scales) {
  __shared__ uint32_t keys[kShare];
  __shared__ int32_t chosen[kShare];
  let_next_begin();
  wait_for_inputs();
  const int thread = int(threadIdx.x), lane = thread % kWarp, first = thread / kWarp * kShare;
  const float* row = logits + int64_t(blockIdx.x) * experts;
  const Choice<kSharePerLane> own(row + first, experts - first, top_k, quads);
  keys[thread] = lane < top_k ? own.key : kTaken;
  chosen[thread] = first + own.expert;
  __syncthreads();
  if (thread >= kWarp) return;
  uint32_t best[kSharePerLane];
#pragma unroll
  for (int i = 0; i < kSharePerLane; ++i) {
    const int place = lane * kSharePerLane + i;
    best[i] = place < int(blockDim.x) ? keys[place] : kTaken;
  }
  Choice<kSharePerLane> choice(best, top_k);
  choice.expert = chosen[choice.expert];
  const float weight = choice.weight(top_k, scales);
  if (lane >= top_k) return;
  ids[int64_t(blockIdx.x) * top_k + lane] = choice.expert;
  weights[int64_t(blockIdx.x) * top_k + lane] = weight;
}

}  // namespace

void CudaOps::route(const RouteArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t rows = dims["rows"], experts = dims["experts"], top_k = dims["top_k"];
  check(experts <= kMostRouted && top_k <= kWarp, "route: top ", top_k, " of ", experts,
        "; the most are ", kWarp, " of ", kMostRouted);
  if (rows == 0) return;
  const float *logits = args.logits.f32(),
              *scales = args.scales.empty() ? nullptr : args.scales.f32();
  const bool quads = rows_of_quads(experts, {logits});
  if (experts > 16 * kWarp) {
    const int64_t shares = (experts + kShare - 1) / kShare;
    return launch(launcher_, unsigned(rows), unsigned(shares) * kWarp, 0, route_many_kernel, logits,
                  int(experts), int(top_k), quads, args.ids.i32(), args.weights.f32(), scales);
  }
  const auto kernel = experts <= 8 * kWarp ? route_kernel<8> : route_kernel<16>;
  launch(launcher_, unsigned((rows + kRowsPerBlock - 1) / kRowsPerBlock), kRowsPerBlock * kWarp, 0,
         kernel, logits, int(rows), int(experts), int(top_k), quads, args.ids.i32(),
         args.weights.f32(), scales);
}

}  // namespace slip
