// Linear layers of few rows: what a launch has to do, and the slabs of weights on their way to it.
// Every warp keeps a ring of slabs in shared memory, across the tiles of its team, and begins with
// them before the input is there.
#pragma once

#include "kernels/cuda/device/instructions.cuh"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/slab_formats.cuh"

namespace slip::gemv {

inline constexpr int kWarps =
    8;  // of a team; they share the slabs of a tile: warp w has w, w + 8, ...
inline constexpr int kTeams = 2;  // of a block; they share the rounded inputs
inline constexpr int kThreads = kTeams * kWarps * kWarp;
inline constexpr int kPartialStride =
    kTileOut + 4;  // a row of partial sums; no two lanes meet in a bank

inline constexpr int kInt4ScaleBytes = kTileOut * 2;  // of a slab in one group
inline constexpr int kInt4Slot = 1024 + kInt4ScaleBytes;
inline constexpr int kByteSlot = 2048 + 16;
inline constexpr int kMostPlaces = 16;  // tiles x rows of a team that wait for the same barrier

struct FewRows {
  LinearInput input;
  LinearNorm norm;
  LinearJobs slabs;
  LinearJobs floats;  // bf16
  int32_t slabs_per_tile;
  int32_t rows_per_block;
  int32_t tiles_at_once;  // of a team, whose partial sums wait for the same barrier
  int32_t early_slots;    // of a ring that are asked for before the input is there
  int32_t teams;          // of all blocks; those of a block are gridDim.x apart
  // Of shared memory, behind the rings.
  int32_t inputs_at, units_at, partials_at;
  bool add;
  int32_t slabs_per_part;  // where a block has one part, it is number blockIdx.z
};

__device__ __forceinline__ int warp_of_team() { return int(threadIdx.x) / kWarp % kWarps; }
__device__ __forceinline__ int team() { return int(threadIdx.x) / kWarp / kWarps; }
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

// The slabs of a warp, in the order in which it uses them. The warps share the slabs of a tile, or
// those of each part.
template <int kSlots, bool kInt4, BlockHas kHas = BlockHas::tile>
class SlabStream {
 public:
  static constexpr int kSlotBytes = kInt4 ? kInt4Slot : kByteSlot;
  static constexpr int kRingBytes = kSlots * kSlotBytes;

  __device__ SlabStream(const FewRows& work, std::byte* ring)
      : work_(work), of_block_(work), ring_(ring), tile_(first_tile()) {
    if (warp() >= slabs()) tile_ = work.slabs.units;  // nothing to do
    if (tile_ < work.slabs.units) begin_tile();
    load(work.early_slots);
  }

  // Of a tile, that this block has.
  __device__ int slabs() const { return of_block_.count; }
  __device__ int first_slab() const { return of_block_.first; }

  // Asks for the rest of the first ring.
  __device__ void fill() { load(kSlots - 1 - work_.early_slots); }

  // The next one; the slot of the one before it is filled again.
  __device__ const std::byte* next() {
    wait_for_copies<kSlots - 2>();
    __syncwarp();
    load_one();
    const std::byte* slab = ring_ + use_;
    use_ = use_ + kSlotBytes == kRingBytes ? 0 : use_ + kSlotBytes;
    return slab;
  }

 private:
  __device__ static int warp() { return warp_of_team(); }
  __device__ static int lane() { return int(threadIdx.x) % kWarp; }

  __device__ void begin_tile() {
#pragma unroll 1
    while (tile_ >= work_.slabs.list[job_].end) ++job_;
    const DeviceWeight& weight = work_.slabs.list[job_].weight;
    const int64_t tile = tile_ - (job_ == 0 ? 0 : work_.slabs.list[job_ - 1].end);
    const int64_t of_tile = work_.slabs_per_tile;
    const auto* scales = static_cast<const std::byte*>(weight.scales);
    begin_slabs();
    slab_bytes_ = kInt4 ? 1024 : slab_bytes(weight.format);
    values_ = weight.values + (tile * of_tile + first_slab() + slab_) * slab_bytes_ + lane() * 16;
    scale_bytes_ = 0;
    if (kInt4 || weight.format == WeightFormat::int4_group) {
      scale_bytes_ = kInt4 ? kInt4ScaleBytes : kSlabIn / weight.group * kTileOut * 2;
      scales_ = scales + (tile * of_tile + first_slab() + slab_) * scale_bytes_ + lane() * 16;
    } else if (weight.format == WeightFormat::fp8_block) {
      scale_bytes_ = sizeof(float);
      const int64_t block_row = tile / (kFp8Block / kTileOut);
      scales_ = scales + (block_row * of_tile + first_slab() + slab_) * scale_bytes_;
    }
  }

  __device__ void next_tile() {
    tile_ += work_.teams;
    if (tile_ >= work_.slabs.units) return;
    if (!kInt4 || tile_ >= work_.slabs.list[job_].end) return begin_tile();
    // The same weight: as far again, less what this warp has had of the tile.
    const int64_t skipped = int64_t(work_.teams) * work_.slabs_per_tile - (slab_ - warp());
    values_ += skipped * 1024;
    scales_ += skipped * kInt4ScaleBytes;
    begin_slabs();
  }

  __device__ void begin_slabs() {
    slab_ = warp();
    if constexpr (kHas == BlockHas::parts) part_end_ = work_.slabs_per_part;
  }

  // Only for int4.
  __device__ void next_part() {
    if (part_end_ == slabs()) return next_tile();
    const int skipped = part_end_ + warp() - slab_;
    values_ += skipped * 1024;
    scales_ += skipped * kInt4ScaleBytes;
    slab_ += skipped;
    part_end_ = min(part_end_ + work_.slabs_per_part, slabs());
  }

  __device__ void load(int count) {
#pragma unroll 1
    for (int i = 0; i < count; ++i) load_one();
  }

  __device__ void load_one() {
    if (tile_ < work_.slabs.units) {
      std::byte* slot = ring_ + fill_ + lane() * 16;
      copy_16_async(slot, values_);
      copy_16_async(slot + 512, values_ + 512);
      if (kInt4 || slab_bytes_ == 1024) {
        if (lane() * 16 < (kInt4 ? kInt4ScaleBytes : scale_bytes_))
          copy_16_async(slot + 1024, scales_);
      } else {
        copy_16_async(slot + 1024, values_ + 1024);
        copy_16_async(slot + 1536, values_ + 1536);
        if (lane() * 4 < scale_bytes_) copy_4_async(slot + 2048, scales_);
      }
      values_ += kWarps * (kInt4 ? 1024 : slab_bytes_);
      scales_ += kWarps * (kInt4 ? kInt4ScaleBytes : scale_bytes_);
      slab_ += kWarps;
      if constexpr (kHas == BlockHas::parts) {
        if (slab_ >= part_end_) next_part();
      } else if (slab_ >= slabs()) {
        next_tile();
      }
    }
    end_copy_group();  // also an empty group: groups are counted
    fill_ = fill_ + kSlotBytes == kRingBytes ? 0 : fill_ + kSlotBytes;
  }

  const FewRows& work_;
  const BlockSlabs<kHas> of_block_;
  std::byte* ring_;
  int fill_ = 0, use_ = 0;  // bytes from the ring's start
  // Of the next load.
  int tile_, job_ = 0, slab_ = 0;
  int part_end_ = 0;
  int slab_bytes_ = 0, scale_bytes_ = 0;
  const std::byte* values_ = nullptr;  // this lane's
  const std::byte* scales_ = nullptr;
};

}  // namespace slip::gemv
