// Linear layers of few rows with slabs of any format but int4 in groups of 128 (int4_runs.cuh), on
// their way from memory. Every warp keeps a ring of them in shared memory, across the tiles of its
// team, and begins with them before the input is there.
#pragma once

#include "kernels/cuda/few_rows.cuh"

namespace slip::gemv {

inline constexpr int kSlotValues = 2048;  // bytes; a slab of f16 comes in two of them
inline constexpr int kByteSlot = kSlotValues + 16;

// The slabs of a warp, in the order in which it uses them: of a tile warp w of a team has w, w + 8,
// and so on.
template <int kSlots, BlockHas kHas = BlockHas::tile>
class SlabStream {
 public:
  static constexpr int kSlotBytes = kByteSlot;
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

  // The next one, or the next half of one; the slot of the one before it is filled again.
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
    slab_ = warp();
    slab_bytes_ = slab_bytes(weight.format);
    values_ = weight.values + (tile * of_tile + first_slab() + slab_) * slab_bytes_ + lane() * 16;
    scale_bytes_ = 0;
    if (weight.format == DeviceFormat::int4_group) {
      scale_bytes_ = kSlabIn / weight.group * kTileOut * 2;
      scales_ = scales + (tile * of_tile + first_slab() + slab_) * scale_bytes_ + lane() * 16;
    } else if (weight.format == DeviceFormat::fp8_block) {
      scale_bytes_ = sizeof(float);
      const int64_t block_row = tile / (kFp8Block / kTileOut);
      scales_ = scales + (block_row * of_tile + first_slab() + slab_) * scale_bytes_;
    }
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
      if (slab_bytes_ == 1024) {
        if (lane() * 16 < scale_bytes_) copy_16_async(slot + 1024, scales_);
      } else {
        copy_16_async(slot + 1024, values_ + 1024);
        copy_16_async(slot + 1536, values_ + 1536);
        if (lane() * 4 < scale_bytes_) copy_4_async(slot + kSlotValues, scales_);
      }
      half_left_ = slab_bytes_ > kSlotValues && !half_left_;
      if (half_left_)
        values_ += kSlotValues;
      else
        advance();
    }
    end_copy_group();  // also an empty group: groups are counted
    fill_ = fill_ + kSlotBytes == kRingBytes ? 0 : fill_ + kSlotBytes;
  }

  // To the next slab.
  __device__ void advance() {
    values_ += kWarps * slab_bytes_ - (slab_bytes_ > kSlotValues ? kSlotValues : 0);
    scales_ += kWarps * scale_bytes_;
    slab_ += kWarps;
    if (slab_ < slabs()) return;
    tile_ += work_.teams;
    if (tile_ < work_.slabs.units) begin_tile();
  }

  const FewRows& work_;
  const BlockSlabs<kHas> of_block_;
  std::byte* ring_;
  int fill_ = 0, use_ = 0;  // bytes from the ring's start
  // Of the next load.
  int tile_, job_ = 0, slab_ = 0;
  int slab_bytes_ = 0, scale_bytes_ = 0;
  bool half_left_ = false;             // of a slab that comes in two
  const std::byte* values_ = nullptr;  // this lane's
  const std::byte* scales_ = nullptr;
};

}  // namespace slip::gemv
