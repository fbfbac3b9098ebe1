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
  struct Pair {
    uint16_t index;
    uint16_t row;  // loops would divide by the ranks
  };
  Pair pairs[kMostPairs];  // by expert
  int32_t count;           // of experts, where there are several rows

  // Warps of a block that choose() keeps from other work, of several rows.
  __device__ static int choosing_warps(const ExpertsStep& step) {
    return step.logits && by_warp(step) ? step.rows : 1;
  }

  // Finds who chose what, of experts that have been chosen. The whole block, of at least as many
  // threads as there are pairs; the caller sees to a barrier before anything is read.
  template <bool kOneRow>
  __device__ __forceinline__ void find(const ExpertsStep& step) {
    const int pair = int(threadIdx.x), all = step.rows * step.top_k;
    if (kOneRow || by_warp(step)) {
      if (pair >= kWarp) return;
      const int32_t id = pair < all ? id_of(step, pair) : -1;
      if constexpr (kOneRow) {
        put_only(id, all);
      } else if (all <= kWarp) {
        sort_in_warp(id, all, step.top_k);
      } else {
        sort_twice_in_warp(id, pair + kWarp < all ? id_of(step, pair + kWarp) : -1, step.top_k);
      }
      return;
    }
    if (pair < all) ids[pair] = id_of(step, pair);
    __syncthreads();
    sort(all, step.top_k);
  }

  // The same of experts that have not: warp r chooses those of row r. Warps that have nothing to do
  // with it do not wait, unless there are many pairs. If `leave`, ids and weights go to where they
  // belong, and the next kernel may begin as soon as they are there.
  template <bool kOneRow>
  __device__ __forceinline__ void choose(const ExpertsStep& step, bool leave) {
    const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
    const int rows = kOneRow ? 1 : step.rows, all = rows * step.top_k;
    if (warp < rows) {
      const Choice<kChosenPerLane> choice(step.logits + warp * step.experts, step.experts,
                                          step.top_k, true);
      const int pair = warp * step.top_k + lane;
      if constexpr (kOneRow)
        put_only(choice.expert, all);
      else if (lane < step.top_k)
        ids[pair] = choice.expert;
      if (leave) [[unlikely]] {  // one block
        const float weight = choice.weight(step.top_k, step.scales);
        if (lane < step.top_k) {
          step.ids[pair] = choice.expert;
          step.weights[pair] = weight;
        }
        __threadfence();
        __syncwarp();
        if constexpr (kOneRow) let_next_begin();
      }
    }
    if constexpr (kOneRow) return;
    if (!by_warp(step)) {
      __syncthreads();
      if (leave) let_next_begin();
      sort(all, step.top_k);
      __syncthreads();
    } else if (warp < rows) {
      __syncwarp();
      sync_first_threads(rows * kWarp);  // those that choose
      if (warp > 0) return;
      if (leave) let_next_begin();
      if (all <= kWarp)
        sort_in_warp(lane < all ? ids[lane] : -1, all, step.top_k);
      else
        sort_twice_in_warp(ids[lane], lane + kWarp < all ? ids[lane + kWarp] : -1, step.top_k);
    }
  }

 private:
  // Whether a single warp can tell who chose what.
  __device__ static bool by_warp(const ExpertsStep& step) {
    constexpr int kMostRows = 8;  // and others have something else to do
    return step.rows * step.top_k <= 2 * kWarp && step.rows <= kMostRows;
  }

  // From the second-level cache: a kernel that began early may have another value in the first.
  __device__ static int32_t id_of(const ExpertsStep& step, int pair) {
    return __ldcg(step.ids + pair);
  }

  __device__ static Pair pair_of(int index, int top_k) {
    return {uint16_t(index), uint16_t(index / top_k)};
  }

  // What follows is for the warp itself; others need a barrier.

  // A row's experts, which are all different, one per lane.
  __device__ __forceinline__ void put_only(int32_t id, int all) {
    const int lane = int(threadIdx.x) % kWarp;
    if (lane < all) {
      experts[lane] = {id, lane, 1};
      pairs[lane] = {uint16_t(lane), 0};
    }
    __syncwarp();
  }

  // Pairs of several rows, one per lane.
  __device__ __forceinline__ void sort_in_warp(int32_t id, int all, int top_k) {
    const int lane = int(threadIdx.x) % kWarp;
    const uint32_t same = __match_any_sync(~0u, id), before = (1u << lane) - 1;
    const int leader = __ffs(int(same)) - 1, users = __popc(same);
    const bool first = lane < all && leader == lane;
    const uint32_t firsts = __ballot_sync(~0u, first);
    int begin = first ? users : 0;  // of pairs, up to and with this lane's
#pragma unroll
    for (int distance = 1; distance < kWarp; distance *= 2) {
      const int more = __shfl_up_sync(~0u, begin, distance);
      if (lane >= distance) begin += more;
    }
    const int own = __shfl_sync(~0u, begin - users, leader);
    if (first) experts[__popc(firsts & before)] = {id, own, users};
    if (lane < all) pairs[own + __popc(same & before)] = pair_of(lane, top_k);
    if (lane == 0) count = __popc(firsts);
    __syncwarp();
  }

  // More pairs than there are lanes: b is the id of pair lane + kWarp, which may not exist (-1).
  __device__ __noinline__ void sort_twice_in_warp(int32_t a, int32_t b, int top_k) {
    const int lane = int(threadIdx.x) % kWarp;
    const uint32_t same_a = __match_any_sync(~0u, a), same_b = __match_any_sync(~0u, b);
    const uint32_t before = (1u << lane) - 1;
    uint32_t a_in_b = 0, b_in_a = 0;
#pragma unroll 4
    for (int other = 0; other < kWarp; ++other) {
      a_in_b |= uint32_t(__shfl_sync(~0u, b, other) == a) << other;
      b_in_a |= uint32_t(__shfl_sync(~0u, a, other) == b) << other;
    }
    const bool exists = b >= 0, first_a = (same_a & before) == 0;
    const bool first_b = exists && b_in_a == 0 && (same_b & before) == 0;
    const uint32_t firsts_a = __ballot_sync(~0u, first_a), firsts_b = __ballot_sync(~0u, first_b);
    const int users_a = first_a ? __popc(same_a) + __popc(a_in_b) : 0;
    const int users_b = first_b ? __popc(same_b) : 0;
    int end_a = users_a, end_b = users_b;  // of pairs, up to and with this lane's
#pragma unroll
    for (int distance = 1; distance < kWarp; distance *= 2) {
      const int more_a = __shfl_up_sync(~0u, end_a, distance);
      const int more_b = __shfl_up_sync(~0u, end_b, distance);
      if (lane >= distance) end_a += more_a, end_b += more_b;
    }
    end_b += __shfl_sync(~0u, end_a, kWarp - 1);
    const int begin_a = end_a - users_a, begin_b = end_b - users_b;
    const int own_a = __shfl_sync(~0u, begin_a, __ffs(int(same_a)) - 1);
    const int leader = __ffs(int(b_in_a != 0 ? b_in_a : same_b)) - 1;
    const int among_a = __shfl_sync(~0u, begin_a, leader);
    const int among_b = __shfl_sync(~0u, begin_b, leader);
    const int own_b = (b_in_a != 0 ? among_a : among_b) + __popc(b_in_a);
    if (first_a) experts[__popc(firsts_a & before)] = {a, begin_a, users_a};
    if (first_b) experts[__popc(firsts_a) + __popc(firsts_b & before)] = {b, begin_b, users_b};
    pairs[own_a + __popc(same_a & before)] = pair_of(lane, top_k);
    if (exists) pairs[own_b + __popc(same_b & before)] = pair_of(lane + kWarp, top_k);
    if (lane == 0) count = __popc(firsts_a) + __popc(firsts_b);
    __syncwarp();
  }

  // Those in `ids`, by the whole block.
  __device__ __noinline__ void sort(int all, int top_k) {
    const int pair = int(threadIdx.x);
    const int32_t id = pair < all ? ids[pair] : -1;
    int before = 0, users = 0;
    for (int other = 0; pair < all && other < all; ++other) {
      const int same = ids[other] == id;
      users += same;
      before += other < pair ? same : 0;
    }
    const bool first = pair < all && before == 0;
    if (pair < all) pairs[pair].index = first ? users : 0;  // for a moment
    const int found = __syncthreads_count(first);
    if (pair == 0) count = found;
    int place = 0, begin = 0;
    for (int other = 0; first && other < pair; ++other) {
      place += pairs[other].index > 0;
      begin += pairs[other].index;
    }
    __syncthreads();
    if (first) {
      experts[place] = {id, begin, users};
      for (int other = pair; other < all; ++other)
        if (ids[other] == id) pairs[begin++] = pair_of(other, top_k);
    }
  }
};

}  // namespace slip
