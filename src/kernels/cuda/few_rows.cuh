// Linear layers of few rows: what a launch has to do, and how its blocks, teams of warps and warps
// share it.
#pragma once

#include "kernels/cuda/device/instructions.cuh"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/slab_formats.cuh"

namespace slip::gemv {

inline constexpr int kWarps = 8;  // of a team; they share the slabs of a tile
inline constexpr int kTeams = 2;  // of a block; they share the rounded inputs
inline constexpr int kThreads = kTeams * kWarps * kWarp;
inline constexpr int kPartialStride =
    kTileOut + 4;  // a row of partial sums; no two lanes meet in a bank

inline constexpr int kMostPlaces = 16;  // tiles x rows of a team that wait for the same barrier

struct FewRows {
  LinearInput input;
  LinearNorm norm;
  LinearJobs slabs;
  LinearJobs floats;  // bf16
  int32_t slabs_per_tile;
  int32_t rows_per_block;
  int32_t tiles_at_once;  // of a team, whose partial sums wait for the same barrier
  int32_t slots;          // of a ring
  int32_t early_slots;    // of them that are asked for before the input is there
  int32_t teams;          // of all blocks; those of a block are gridDim.x apart
  // Of shared memory, behind rings.
  int32_t inputs_at, units_at, partials_at;
  bool add;
  int32_t slabs_per_part;  // where a block has one part, it is number blockIdx.z
};

__device__ __forceinline__ int warp_of_team() { return int(threadIdx.x / kWarp % kWarps); }
__device__ __forceinline__ int team() { return int(threadIdx.x / kWarp / kWarps); }
__device__ __forceinline__ int first_tile() { return int(blockIdx.x) + team() * int(gridDim.x); }

// What a block has of a tile's slabs: all of them, as one or part by part, or one of the parts
// (linear_parts()).
enum class BlockHas : uint8_t { tile, parts, part };

template <BlockHas kHas>
struct BlockSlabs {
  int first = 0, count;

  __device__ explicit BlockSlabs(const FewRows& work) : count(work.slabs_per_tile) {
    if constexpr (kHas == BlockHas::part) {
      first = int(blockIdx.z) * work.slabs_per_part;
      count = min(work.slabs_per_part, count - first);
    }
  }
};

}  // namespace slip::gemv
