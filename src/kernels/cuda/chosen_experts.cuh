// Who chose which expert, in steps of few rows: pairs (row, rank) whose ids are the same. Found by
// every block for itself, a thread per pair.
#pragma once

#include "kernels/cuda/device/warp.cuh"
#include "kernels/cuda/experts.h"

namespace slip {

inline constexpr int kMostPairs = int(kFewRows) * kMostTopK;

// In shared memory. Experts are in the order of their first pairs, an expert's users in the order
// of pairs.
struct ChosenExperts {
  struct Expert {
    int32_t id;
    int32_t first, users;  // of `pairs`
  };

  int32_t ids[kMostPairs];
  Expert experts[kMostPairs];
  int32_t pairs[kMostPairs];  // by expert

  // The whole block, of at least as many threads as there are pairs. Returns how many there are;
  // the caller sees to a barrier before they are used.
  template <bool kOneRow>
  __device__ __forceinline__ int find(const ExpertsStep& step) {
    const int pair = int(threadIdx.x), count = step.rows * step.top_k;
    // From the second-level cache: a kernel that began early may have another value in the first.
    const int32_t id = pair < count ? __ldcg(step.ids + pair) : -1;
    if constexpr (kOneRow) {  // a row's experts are all different
      if (pair < count) {
        experts[pair] = {id, pair, 1};
        pairs[pair] = pair;
      }
      return count;
    }
    if (pair < count) ids[pair] = id;
    __syncthreads();
    int before = 0, users = 0;
    for (int other = 0; pair < count && other < count; ++other) {
      const int same = ids[other] == id;
      users += same;
      before += other < pair ? same : 0;
    }
    const bool first = pair < count && before == 0;
    if (pair < count) pairs[pair] = first ? users : 0;  // for a moment
    const int found = __syncthreads_count(first);
    int place = 0, begin = 0;
    for (int other = 0; first && other < pair; ++other) {
      place += pairs[other] > 0;
      begin += pairs[other];
    }
    __syncthreads();
    if (first) {
      experts[place] = {id, begin, users};
      for (int other = pair; other < count; ++other)
        if (ids[other] == id) pairs[begin++] = other;
    }
    return found;
  }
};

}  // namespace slip
