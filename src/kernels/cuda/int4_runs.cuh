// Linear layers of few rows with weights of int4 in groups of 128. What a warp has of a tile, its
// run, are slabs that lie one behind the other. They come in pieces of some slabs, whose addresses
// are computed once, through a ring in shared memory; a place in the ring is asked for again when
// its piece is in registers.
#pragma once

#include "kernels/cuda/rounded_rows.cuh"

namespace slip::gemv {

// Of a tile whose slabs the warps of a team share.
constexpr int longest_run(int slabs) { return (slabs + kWarps - 1) / kWarps; }

// Slabs of a piece. The products of several hide each other's latency: twos, and threes where a run
// then ends in fewer zeros or, of five to eight rows, is long. Of more rows there are registers for
// two, and zeros cost more than single slabs do.
inline constexpr int kSingle = 1, kShortPiece = 2, kLongPiece = 3, kLongPieceRows = 8;
constexpr int piece_length(int slabs, int rows) {
  const int run = longest_run(slabs);
  if (rows > kLongPieceRows) return run % 2 == 0 ? kShortPiece : kSingle;
  const bool longer = rows > kIntegerRows && run > 6;
  return longer || run == 3 || run == 5 || run == 6 ? kLongPiece : kShortPiece;
}

// Kernels are made for up to so many rows.
constexpr int int4_most_rows(int rows) {
  return rows == 1 ? 1 : (rows + kIntegerRows - 1) / kIntegerRows * kIntegerRows;
}

// Slots of a warp's ring, of pieces of one slab, two and three (few_rows_plan.cuh chooses).
inline constexpr int kInt4Rings[3][3] = {{8, 5, 3}, {4, 3, 1}, {3, 2, 1}};
constexpr const int (&int4_rings(int length))[3] { return kInt4Rings[length - kSingle]; }
constexpr int int4_slot_bytes(int length) {
  return length * (Int4Words<1>::kBytes + Int4Words<1>::kScaleBytes);
}

// Behind the last slab of a row its pieces may go on, with weights whose scales are zero: inputs
// there may be anything, units are to be numbers.
inline constexpr int kSlabsBehind = kLongPiece - 1;
__device__ __forceinline__ void clear_units_behind(const RoundedRows& rounded, int slabs) {
  if (int(threadIdx.x) < kSlabsBehind * rounded.rows)
    rounded.integers(slabs)[threadIdx.x] = IntegerSlab{0, {0}};
}

// What a warp has of a tile: outputs l / 4 and l / 4 + 8 of row 4 t + l % 4.
template <int kRowTiles>
struct Int4Sums {
  float2 totals[kRowTiles] = {};

  template <int kChains>
  __device__ __forceinline__ void add(const Int4Words<1>& words, const RoundedRows& from, int slab,
                                      const IntegerLanes<kRowTiles>& lanes) {
    const std::byte* inputs = from.inputs + slab * slab_input_bytes(from.rows);
#pragma unroll
    for (int t = 0; t < kRowTiles; ++t) {
      uint4 x[2];
#pragma unroll
      for (int half = 0; half < 2; ++half)
        x[half] =
            *reinterpret_cast<const uint4*>(inputs + lanes.inputs[t] + half * lanes.half_bytes);
      add_int4_slab<1, kChains>(totals[t], words, x,
                                load_integers(from.integers(slab) + lanes.sum_rows[t]));
    }
  }
  // To row r of `partials`, from the lane's output on.
  __device__ __forceinline__ void write(float* partials, int rows) const {
#pragma unroll
    for (int t = 0; t < kRowTiles; ++t) {
      const int row = t * kIntegerRows + int(threadIdx.x) % 4;
      if (row >= rows) continue;
      partials[row * kPartialStride] = totals[t].x;
      partials[row * kPartialStride + 8] = totals[t].y;
    }
  }
};

// A warp's runs, in the order of tiles and, where the block has several parts of them, of parts.
template <int kLength, BlockHas kHas = BlockHas::tile>
class Int4Runs {
 public:
  static constexpr int kSlotBytes = int4_slot_bytes(kLength);

  // Where a piece is.
  struct Place {
    int tile;
    int part;  // its first slab
    int done;  // slabs of the run before it
  };

  // Rings lie at the beginning of `shared`.
  __device__ Int4Runs(const FewRows& work, std::byte* shared)
      : work_(work),
        ring_(shared + int(threadIdx.x) / kWarp * work.slots * kSlotBytes),
        now_{first_tile(), kHas == BlockHas::part ? int(blockIdx.z) * work.slabs_per_part : 0, 0},
        next_(now_) {
    if (next_.tile < work.slabs.units) find_weight();
    ask_some(work.early_slots);
  }

  // Asks for the rest of the first ring.
  __device__ __forceinline__ void fill() { ask_some(work_.slots - work_.early_slots); }

  __device__ bool ended() const { return now_.tile >= work_.slabs.units; }
  __device__ bool begins_tile() const { return now_.part == 0; }

  // The next run.
  template <int kRowTiles>
  __device__ __forceinline__ Int4Sums<kRowTiles> add_run(const RoundedRows& from,
                                                         const IntegerLanes<kRowTiles>& lanes) {
    Int4Sums<kRowTiles> sums;
#pragma unroll 1
    do add_piece(from, lanes, sums);
    while (!advance(now_));
    return sums;
  }

 private:
  using Words = Int4Words<1>;
  static constexpr int kMostRowsBesidePiece = 12;  // whose sums leave registers for all of a piece

  template <int kRowTiles>
  __device__ __forceinline__ void add_piece(const RoundedRows& from,
                                            const IntegerLanes<kRowTiles>& lanes,
                                            Int4Sums<kRowTiles>& sums) {
    wait();
    const std::byte* slot = ring_ + slot_;
    const auto load = [&](int i, Words& words) {  // what is missing of a piece has scales of zero
      words.load_shared(
          slot + i * Words::kBytes + Words::lane_values(),
          slot + kLength * Words::kBytes + i * Words::kScaleBytes + Words::lane_scales());
    };
    const int first = Run(work_, now_).first + now_.done;
    constexpr int kChains = kLength == kSingle ? 2 : 1;
    if constexpr (kLength > kSingle && kRowTiles * kIntegerRows > kMostRowsBesidePiece) {
#pragma unroll
      for (int i = 0; i < kLength; ++i) {
        Words words;
        load(i, words);
        sums.template add<kChains>(words, from, first + i, lanes);
      }
      __syncwarp();
      ask();
    } else {
      Words words[kLength];
#pragma unroll
      for (int i = 0; i < kLength; ++i) load(i, words[i]);
      __syncwarp();
      ask();
#pragma unroll
      for (int i = 0; i < kLength; ++i)
        sums.template add<kChains>(words[i], from, first + i, lanes);
    }
  }

  // Slabs, counted from the first that the block has rows for.
  struct Run {
    int first, count;

    __device__ Run(const FewRows& work, const Place& place) {
      const int slabs = kHas == BlockHas::tile
                            ? work.slabs_per_tile
                            : min(work.slabs_per_part, work.slabs_per_tile - place.part);
      const auto begin = [&](int warp) { return int(uint32_t(warp * slabs) / kWarps); };
      first = begin(warp_of_team());
      count = begin(warp_of_team() + 1) - first;
      if constexpr (kHas == BlockHas::parts) first += place.part;
    }
  };

  // Until the piece that is next has arrived.
  __device__ __forceinline__ void wait() const {
    constexpr int kLong = int4_rings(kLength)[0], kMiddle = int4_rings(kLength)[1],
                  kShort = int4_rings(kLength)[2];
    if (work_.slots == kLong)
      wait_for_copies<kLong - 1>();
    else if (work_.slots == kMiddle)
      wait_for_copies<kMiddle - 1>();
    else
      wait_for_copies<kShort - 1>();
    __syncwarp();
  }

  __device__ __forceinline__ void ask_some(int count) {
#pragma unroll 1
    for (int i = 0; i < count; ++i) ask();
  }

  // For the piece after those that have been asked for, to the slot that comes next.
  __device__ __forceinline__ void ask() {
    if (next_.tile < work_.slabs.units) {
      const Run run(work_, next_);
      const int slab =
          tile_slab_ + run.first + next_.done + (kHas == BlockHas::part ? next_.part : 0);
      const int count = run.count - next_.done, lane = int(threadIdx.x) % kWarp;
      const std::byte* values = values_ + int64_t(slab) * Words::kBytes;
      std::byte* slot = ring_ + slot_ + lane * 16;
#pragma unroll
      for (int i = 0; i < kLength; ++i)
        if (i < count) {
          copy_16_async(slot + i * Words::kBytes, values + i * Words::kBytes);
          copy_16_async(slot + i * Words::kBytes + Words::kBytes / 2,
                        values + i * Words::kBytes + Words::kBytes / 2);
        }
      std::byte* scales = slot + kLength * Words::kBytes;
      constexpr int kScaleLanes = Words::kScaleBytes / 16;  // of a slab
      if (lane < min(count, kLength) * kScaleLanes)
        copy_16_async(scales, scales_ + int64_t(slab) * Words::kScaleBytes);
      if (count < kLength && lane >= count * kScaleLanes && lane < kLength * kScaleLanes)
        *reinterpret_cast<uint4*>(scales) = uint4{};
      advance_next();
    }
    end_copy_group();  // also an empty group: groups are counted
    slot_ = slot_ + kSlotBytes == work_.slots * kSlotBytes ? 0 : slot_ + kSlotBytes;
  }

  // The weight of the tile that comes next.
  __device__ __forceinline__ void find_weight() {
    int job = 0;
#pragma unroll 1
    while (next_.tile >= work_.slabs.list[job].end) ++job;
    const DeviceWeight& weight = work_.slabs.list[job].weight;
    const int lane = int(threadIdx.x) % kWarp;
    values_ = weight.values + lane * 16;
    scales_ = static_cast<const std::byte*>(weight.scales) + lane * 16;
    end_ = work_.slabs.list[job].end;
    tile_slab_ =
        (next_.tile - (job == 0 ? 0 : work_.slabs.list[job - 1].end)) * work_.slabs_per_tile;
  }

  __device__ __forceinline__ void advance_next() {
    if (!advance(next_)) return;
    if (kHas == BlockHas::parts && next_.part != 0) return;
    tile_slab_ += work_.teams * work_.slabs_per_tile;
    if (next_.tile >= end_ && next_.tile < work_.slabs.units) [[unlikely]]
      find_weight();
  }

  // To the next piece. Whether it is another run's.
  __device__ __forceinline__ bool advance(Place& place) const {
    place.done += kLength;
    if (place.done < Run(work_, place).count) return false;
    place.done = 0;
    if constexpr (kHas == BlockHas::parts) {
      place.part += work_.slabs_per_part;
      if (place.part < work_.slabs_per_tile) return true;
      place.part = 0;
    }
    place.tile += work_.teams;
    return true;
  }

  const FewRows& work_;
  std::byte* ring_;
  int slot_ = 0;      // bytes from the ring's start
  Place now_, next_;  // to be multiplied, to be asked for
  // Of the weight that the latter is of: the lane's, its last tile, and the tile's first slab.
  const std::byte *values_ = nullptr, *scales_ = nullptr;
  int end_ = 0, tile_slab_ = 0;
};

// The tiles of a block, some at a time: every warp leaves its sums in `partials`, then all call
// finish(first tile, partials), which begins with a barrier. Two sets of partial sums take turns:
// the next may be finished by some warps while others still read the last.
template <int kMostRows, class Runs, class Finish>
__device__ __forceinline__ void walk_runs(const FewRows& work, Runs& runs,
                                          const RoundedRows& rounded, float* partials,
                                          const Finish& finish) {
  constexpr int kRowTiles = (kMostRows + kIntegerRows - 1) / kIntegerRows;
  const IntegerLanes<kRowTiles> lanes(rounded.rows);
  const int tile_partials = kWarps * work.rows_per_block * kPartialStride;
  int turn = 0;
#pragma unroll 1
  for (int first = int(blockIdx.x); first < work.slabs.units;
       first += work.tiles_at_once * work.teams, turn ^= 1) {
    float* set = partials + turn * kTeams * work.tiles_at_once * tile_partials;
    float* own = set + team() * tile_partials + int(threadIdx.x) % kWarp / 4 +
                 warp_of_team() * work.rows_per_block * kPartialStride;
#pragma unroll 1
    for (int i = 0; i < work.tiles_at_once && !runs.ended(); ++i) {
      runs.add_run(rounded, lanes).write(own, rounded.rows);
      own += kTeams * tile_partials;
    }
    finish(first, set);
  }
}

}  // namespace slip::gemv
