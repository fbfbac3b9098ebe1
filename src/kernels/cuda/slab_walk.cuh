// How the warps of a block go through the slabs of several tiles, the next ones always on their way
// to registers.
#pragma once

#include "kernels/cuda/slab_values.cuh"

namespace slip {

inline constexpr int kWalkWarps = 16;  // of a block, of which a multiprocessor has one
inline constexpr int kWalkThreads = kWalkWarps * kWarp;

// Slabs of several tiles, which the warps of a block take in turn; a tile has at least one.
struct SlabCursor {
  int slot, slab;  // the tile's, and of the tile

  __device__ SlabCursor(int its_slot, int its_slab) : slot(its_slot), slab(its_slab) {}
  __device__ explicit SlabCursor(int slabs) : slot(0), slab(int(threadIdx.x) / kWarp) {
    normalize(slabs);
  }
  __device__ void advance(int slabs) {
    slab += kWalkWarps;
    normalize(slabs);
  }

 private:
  __device__ void normalize(int slabs) {
#pragma unroll 1
    while (slab >= slabs) {
      slab -= slabs;
      ++slot;
    }
  }
};

template <class Slab>
__device__ __forceinline__ void load_slab(const WeightTile& tile, int slab,
                                          HalfWords<Slab>& words) {
  words = load_halves<Slab>(tile, slab);
}

// A warp's slabs, kAhead of which are on their way. The first ones are asked for when it is made,
// which may be before their activations are there.
template <class Words, int kTiles, int kAhead>
class SlabWalk {
 public:
  // tiles: [slots][kTiles]
  __device__ SlabWalk(const WeightTile* tiles, int slots, int slabs)
      : tiles_(tiles), slots_(slots), slabs_(slabs), next_(slabs) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) load(words_[i]);
  }

  // Asks for all that run() will load to be brought closer.
  __device__ __forceinline__ void prefetch_rest() const {
    constexpr int kLine = 128, kLines = Words::kBytes / kLine;
    const int lane = int(threadIdx.x) % kWarp;
#pragma unroll 1
    for (SlabCursor at = next_; at.slot < slots_; at.advance(slabs_))
#pragma unroll
      for (int line = lane; line < kTiles * kLines; line += kWarp)
        prefetch_line(tiles_[at.slot * kTiles + line / kLines].values + at.slab * Words::kBytes +
                      line % kLines * kLine);
  }

  // Calls use(words, cursor) for each.
  template <class Use>
  __device__ __forceinline__ void run(const Use& use) {
    SlabCursor now(slabs_);
#pragma unroll 1
    while (now.slot < slots_) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (now.slot >= slots_) break;
        use(words_[i], now);
        load(words_[i]);
        now.advance(slabs_);
      }
    }
  }

 private:
  __device__ __forceinline__ void load(Words (&words)[kTiles]) {
    if (next_.slot >= slots_) return;
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
      load_slab(tiles_[next_.slot * kTiles + t], next_.slab, words[t]);
    next_.advance(slabs_);
  }

  const WeightTile* tiles_;
  int slots_, slabs_;
  SlabCursor next_;
  Words words_[kAhead][kTiles];
};

}  // namespace slip
