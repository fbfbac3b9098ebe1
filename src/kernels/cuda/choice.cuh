// The largest logits of a row: which experts it meets, and with what weights.
#pragma once

#include "kernels/cuda/device/warp.cuh"
#include "kernels/cuda/quads.cuh"

namespace slip {

// Keys have the order of logits; both zeros are the same. Not a number comes last: experts are
// distinct whatever the logits are.
inline constexpr uint32_t kTaken = 0;
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

// What lane i knows of the expert of rank i. Made by a warp, whose lanes have kPerLane neighbours
// each, so that of equal logits the first lane has the first expert.
template <int kPerLane>
struct Choice {
  int expert = 0;
  uint32_t key = kTaken;

  __device__ __forceinline__ Choice(const float* logits, int experts, int top_k, bool quads) {
    const int lane = int(threadIdx.x) % kWarp;
    uint32_t keys[kPerLane];
#pragma unroll
    for (int i = 0; i < kPerLane; i += kQuad) {
      const int first = lane * kPerLane + i;
      const float4 four = quads ? load_quad<true>(logits, first, experts)
                                : load_quad<false>(logits, first, experts);
      const float values[kQuad] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int j = 0; j < kQuad; ++j)
        keys[i + j] = first + j < experts ? key_of(values[j]) : kTaken;
    }
    choose(keys, top_k);
  }

  // Of keys that were found before.
  __device__ __forceinline__ Choice(uint32_t (&keys)[kPerLane], int top_k) { choose(keys, top_k); }

  // Softmax over all experts, renormalised over the chosen, is the softmax of the chosen. Then
  // times the expert's scale, if there are scales.
  __device__ __forceinline__ float weight(int top_k, const float* scales) const {
    const int lane = int(threadIdx.x) % kWarp;
    const float logit = logit_of(key);
    const float largest = __shfl_sync(~0u, logit, 0);
    const float part = lane < top_k ? expf(logit - largest) : 0.0f;
    const float total = warp_sum(part);
    return scales && lane < top_k ? part / total * scales[expert] : part / total;
  }

 private:
  __device__ __forceinline__ void choose(uint32_t (&keys)[kPerLane], int top_k) {
    const int lane = int(threadIdx.x) % kWarp;
#pragma unroll 1  // little code: it is waited for like any other memory
    for (int rank = 0; rank < top_k; ++rank) {
      uint32_t best;
      int place;
      find_best<kPerLane>(keys, best, place);
      const uint32_t largest = __reduce_max_sync(~0u, best);
      const int owner = __ffs(int(__ballot_sync(~0u, best == largest))) - 1;
      const int chosen = __shfl_sync(~0u, lane * kPerLane + place, owner);
      if (lane == rank) {
        expert = chosen;
        key = largest;
      }
#pragma unroll
      for (int i = 0; i < kPerLane; ++i)
        if (lane == owner && place == i) keys[i] = kTaken;
    }
  }
};

}  // namespace slip
