// What the kernels for experts of few rows share.
#pragma once

#include <cstdint>

#include "kernels/cuda/slab_walk.cuh"

namespace slip {

inline constexpr int kExpertWarps = kWalkWarps;  // of a block, of which a multiprocessor has one
inline constexpr int kExpertThreads = kExpertWarps * kWarp;

// A tile of a weight of a kind.
template <SlabKind kKind>
__device__ __forceinline__ WeightTile tile_of(const ExpertWeight& weight, int tile, int in) {
  if constexpr (kKind == SlabKind::int4) return int4_tile(weight, tile, in);
  return weight_tile(weight, tile, in);
}

}  // namespace slip
