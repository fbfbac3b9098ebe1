#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/device/warp.cuh"
#include "kernels/cuda/quads.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

constexpr int kRowsPerBlock = 4;
constexpr int64_t kMostRouted = 2048;  // clusters of a head are chosen like experts

// Keys have the order of logits; both zeros are the same. Not a number comes last: experts are
// distinct whatever the logits are.
constexpr uint32_t kTaken = 0;
__device__ __forceinline__ uint32_t key_of(float logit) {
  if (isnan(logit)) return kTaken + 1;
  const uint32_t bits = __float_as_uint(logit + 0.0f);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ float logit_of(uint32_t key) {
  return __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key);
}

// The largest of kCount keys and the first place where it is; a tree, for it is waited for.
template <int kCount>
__device__ __forceinline__ void find_best(const uint32_t* keys, uint32_t& best, int& place) {
  if constexpr (kCount == 1) {
    best = keys[0];
    place = 0;
  } else {
    uint32_t other;
    int other_place;
    find_best<kCount / 2>(keys, best, place);
    find_best<kCount / 2>(keys + kCount / 2, other, other_place);
    if (other <= best) return;
    best = other;
    place = kCount / 2 + other_place;
  }
}

// One warp, one row. Each lane has kPerLane neighbours, so that of equal logits the first lane has
// the first expert.
template <int kPerLane>
__global__ void __launch_bounds__(kRowsPerBlock* kWarp)
    route_kernel(const float* logits, int rows, int experts, int top_k, bool quads, int32_t* ids,
                 float* weights, const float* scales) {
  let_next_begin();  // gate_up_kernel() can fetch the shared expert meanwhile
  wait_for_inputs();
  const int row = int(blockIdx.x) * kRowsPerBlock + int(threadIdx.x) / kWarp;
  if (row >= rows) return;
  const int lane = int(threadIdx.x) % kWarp;
  logits += int64_t(row) * experts;

  uint32_t keys[kPerLane];
#pragma unroll
  for (int i = 0; i < kPerLane; i += kQuad) {
    const int expert = lane * kPerLane + i;
    const float4 four = quads ? load_quad<true>(logits, expert, experts)
                              : load_quad<false>(logits, expert, experts);
    const float values[kQuad] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int j = 0; j < kQuad; ++j) keys[i + j] = expert + j < experts ? key_of(values[j]) : kTaken;
  }

  int chosen = 0;  // of rank `lane`, and its key
  uint32_t chosen_key = kTaken;
#pragma unroll 1  // little code: it is waited for like any other memory
  for (int rank = 0; rank < top_k; ++rank) {
    uint32_t best;
    int place;
    find_best<kPerLane>(keys, best, place);
    const uint32_t largest = __reduce_max_sync(~0u, best);
    const int owner = __ffs(int(__ballot_sync(~0u, best == largest))) - 1;
    const int expert = __shfl_sync(~0u, lane * kPerLane + place, owner);
    if (lane == rank) {
      chosen = expert;
      chosen_key = largest;
    }
#pragma unroll
    for (int i = 0; i < kPerLane; ++i)
      if (lane == owner && place == i) keys[i] = kTaken;
  }

  // Softmax over all experts, renormalised over the chosen, is the softmax of the chosen.
  const float logit = logit_of(chosen_key);
  const float largest = __shfl_sync(~0u, logit, 0);
  const float weight = lane < top_k ? expf(logit - largest) : 0.0f;
  const float total = warp_sum(weight);
  if (lane < top_k) {
    ids[int64_t(row) * top_k + lane] = chosen;
    weights[int64_t(row) * top_k + lane] =
        scales ? weight / total * scales[chosen] : weight / total;
  }
}

}  // namespace

void CudaOps::route(const RouteArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t rows = dims["rows"], experts = dims["experts"], top_k = dims["top_k"];
  check(experts <= kMostRouted && top_k <= kWarp, "route: top ", top_k, " of ", experts,
        "; the most are ", kWarp, " of ", kMostRouted);
  if (rows == 0) return;
  const auto run = [&](auto kernel) {
    launch(launcher_, unsigned((rows + kRowsPerBlock - 1) / kRowsPerBlock), kRowsPerBlock * kWarp,
           0, kernel, args.logits.f32(), int(rows), int(experts), int(top_k),
           rows_of_quads(experts, {args.logits.f32()}), args.ids.i32(), args.weights.f32(),
           args.scales.empty() ? nullptr : args.scales.f32());
  };
  if (experts <= 8 * kWarp)
    run(route_kernel<8>);
  else if (experts <= 16 * kWarp)
    run(route_kernel<16>);
  else
    run(route_kernel<kMostRouted / kWarp>);
}

}  // namespace slip
