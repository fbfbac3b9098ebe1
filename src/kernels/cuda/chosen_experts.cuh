// Who chose which expert, in steps of few rows: pairs (row, rank) whose ids are the same. Found by
// every block for itself; there are at most a few hundred.
#pragma once

#include "kernels/cuda/device/warp.cuh"

namespace slip {

// Pairs (row, rank) of the expert that `pair` has chosen, in order; at most one per row.
__device__ __forceinline__ int find_users(const int32_t* ids, int pairs, int pair, int most,
                                          int32_t* users) {
  const int lane = int(threadIdx.x) % kWarp;
  const int32_t expert = ids[pair];
  int count = 0;
  for (int begin = 0; begin < pairs; begin += kWarp) {
    const int other = begin + lane;
    const bool same = other < pairs && ids[other] == expert;
    const uint32_t mask = __ballot_sync(~0u, same);
    const int place = count + __popc(mask & ((1u << lane) - 1));
    if (same && place < most) users[place] = other;
    count += __popc(mask);
  }
  return min(count, most);
}

// The first pair of every expert that is chosen; one warp. `seen` is zero.
__device__ __forceinline__ int find_firsts(const int32_t* ids, int pairs, uint32_t* seen,
                                           int32_t* firsts) {
  const int lane = int(threadIdx.x) % kWarp;
  int count = 0;
  for (int begin = 0; begin < pairs; begin += kWarp) {
    const int pair = begin + lane;
    const int32_t expert = pair < pairs ? ids[pair] : -1;
    const uint32_t same = __match_any_sync(~0u, expert);
    const bool first = expert >= 0 && __ffs(int(same)) - 1 == lane &&
                       (seen[expert / 32] >> (expert % 32) & 1) == 0;
    __syncwarp();
    if (first) atomicOr(&seen[expert / 32], 1u << (expert % 32));
    const uint32_t mask = __ballot_sync(~0u, first);
    if (first) firsts[count + __popc(mask & ((1u << lane) - 1))] = pair;
    count += __popc(mask);
    __syncwarp();
  }
  return count;
}

}  // namespace slip
