#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/device/warp.cuh"
#include "kernels/cuda/experts.h"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kRowsPerBlock = 4;

// Keys have the order of logits; both zeros are the same. Not a number comes last: experts are
// distinct whatever the logits are.
constexpr uint32_t kTaken = 0;
__device__ __forceinline__ uint32_t key_of(float logit) {
  if (isnan(logit)) return kTaken + 1;
  const uint32_t bits = __float_as_uint(logit + 0.0f);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// One warp, one row. Lane l holds experts l, l + 32, ... and the best of those not yet taken.
template <int kPerLane>
__global__ void route_kernel(const float* logits, int rows, int experts, int top_k, int32_t* ids,
                             float* weights) {
  let_next_begin();  // gate_up_kernel() can fetch the shared expert meanwhile
  wait_for_inputs();
  const int row = int(blockIdx.x) * kRowsPerBlock + int(threadIdx.x) / kWarp;
  if (row >= rows) return;
  const int lane = int(threadIdx.x) % kWarp;
  logits += int64_t(row) * experts;

  uint32_t keys[kPerLane];
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int expert = i * kWarp + lane;
    keys[i] = expert < experts ? key_of(logits[expert]) : kTaken;
  }
  uint32_t best = 0;
  int best_expert = 0;
  const auto find_best = [&] {
    best = kTaken;
    best_expert = kMostExperts;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      if (keys[i] <= best) continue;
      best = keys[i];
      best_expert = i * kWarp + lane;
    }
  };
  find_best();

  int chosen = 0;  // of rank `lane`
  for (int rank = 0; rank < top_k; ++rank) {
    const uint32_t largest = __reduce_max_sync(~0u, best);
    const int expert = __reduce_min_sync(~0u, best == largest ? best_expert : kMostExperts);
    if (lane == rank) chosen = expert;
    if (expert % kWarp == lane) {
#pragma unroll
      for (int i = 0; i < kPerLane; ++i)
        if (i * kWarp + lane == expert) keys[i] = kTaken;
      find_best();
    }
  }

  // Softmax over all experts, renormalised over the chosen, is the softmax of the chosen.
  const float logit = lane < top_k ? logits[chosen] : 0.0f;
  const float largest = __shfl_sync(~0u, logit, 0);
  const float weight = lane < top_k ? expf(logit - largest) : 0.0f;
  const float total = warp_sum(weight);
  if (lane < top_k) {
    ids[int64_t(row) * top_k + lane] = chosen;
    weights[int64_t(row) * top_k + lane] = weight / total;
  }
}

}  // namespace

void CudaOps::route(const RouteArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t rows = dims["rows"], experts = dims["experts"], top_k = dims["top_k"];
  check(experts <= kMostExperts && top_k <= kMostTopK, "route: top ", top_k, " of ", experts,
        " experts; the most are ", kMostTopK, " of ", kMostExperts);
  if (rows == 0) return;
  const auto run = [&](auto kernel) {
    launch(launcher_, unsigned((rows + kRowsPerBlock - 1) / kRowsPerBlock), kRowsPerBlock * kWarp,
           0, kernel, args.logits.f32(), int(rows), int(experts), int(top_k), args.ids.i32(),
           args.weights.f32());
  };
  if (experts <= 8 * kWarp)
    run(route_kernel<8>);
  else
    run(route_kernel<kMostExperts / kWarp>);
}

}  // namespace slip
