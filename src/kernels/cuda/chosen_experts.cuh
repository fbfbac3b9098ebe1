// Who chose which expert, in steps of few rows: pairs (row, rank) whose ids are the same. Found by
// every block for itself, a thread per pair.
#pragma once

#include "kernels/cuda/choice.cuh"
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
    if constexpr (kOneRow) return put_only(pair, id, count);
    if (pair < count) ids[pair] = id;
    __syncthreads();
    return sort(step);
  }

  // The same of experts that have not been chosen yet: warp r chooses those of row r. If `leave`,
  // ids and weights go to where they belong, and the next kernel may begin as soon as they are
  // there.
  template <bool kOneRow>
  __device__ __forceinline__ int choose(const ExpertsStep& step, bool leave) {
    const int row = int(threadIdx.x) / kWarp, rank = int(threadIdx.x) % kWarp;
    const int pair = row * step.top_k + rank, count = step.rows * step.top_k;
    if (row < step.rows) {
      const Choice<kChosenPerLane> choice(step.logits + row * step.experts, step.experts,
                                          step.top_k, true);
      if (rank < step.top_k) {
        if constexpr (kOneRow)
          put_only(pair, choice.expert, count);
        else
          ids[pair] = choice.expert;
      }
      if (leave) [[unlikely]] {  // one block
        const float weight = choice.weight(step.top_k, step.scales);
        if (rank < step.top_k) {
          step.ids[pair] = choice.expert;
          step.weights[pair] = weight;
        }
        __threadfence();
        __syncwarp();
      }
      if (kOneRow && leave) let_next_begin();
    }
    if constexpr (kOneRow) return count;
    __syncthreads();
    if (leave) let_next_begin();
    return sort(step);
  }

 private:
  // A row's experts are all different.
  __device__ __forceinline__ int put_only(int pair, int32_t id, int count) {
    if (pair < count) {
      experts[pair] = {id, pair, 1};
      pairs[pair] = pair;
    }
    return count;
  }

  __device__ __forceinline__ int sort(const ExpertsStep& step) {
    const int pair = int(threadIdx.x), count = step.rows * step.top_k;
    const int32_t id = pair < count ? ids[pair] : -1;
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
