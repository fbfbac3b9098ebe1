// Linear layers of few rows: bound by the bytes of the weights. Every warp keeps a ring of slabs on
// their way to shared memory, across the tiles of its team, and begins with them before the input
// is there.
#include <algorithm>

#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/float_outputs.cuh"
#include "kernels/cuda/int4_products.cuh"
#include "kernels/cuda/linear.h"

namespace slip {
namespace {

constexpr int kWarps = 8;  // of a team; they share the slabs of a tile: warp w has w, w + 8, ...
constexpr int kTeams = 2;  // of a block; they share the rounded inputs
constexpr int kThreads = kTeams * kWarps * kWarp;
constexpr int kPartialStride = kTileOut + 4;  // a row of partial sums; no two lanes meet in a bank

constexpr int kInt4ScaleBytes = kTileOut * 2;  // of a slab in one group
constexpr int kInt4Slot = 1024 + kInt4ScaleBytes;
constexpr int kByteSlot = 2048 + 16;
constexpr int kMostPlaces = 16;  // tiles x rows of a team that wait for the same barrier

struct FewRows {
  LinearInput input;
  LinearJobs slabs, floats;
  int32_t slabs_per_tile;
  int32_t rows_per_block;
  int32_t tiles_at_once;  // of a team, whose partial sums wait for the same barrier
  int32_t teams;          // of all blocks; those of a block are gridDim.x apart
  // Of shared memory, behind the rings.
  int32_t inputs_at, units_at, partials_at;
  bool add;
};

__device__ __forceinline__ int warp_of_team() { return int(threadIdx.x) / kWarp % kWarps; }
__device__ __forceinline__ int team() { return int(threadIdx.x) / kWarp / kWarps; }
__device__ __forceinline__ int first_tile() { return int(blockIdx.x) + team() * int(gridDim.x); }

// The slabs of a warp, in the order in which it uses them.
template <int kSlots, bool kInt4>
class SlabStream {
 public:
  static constexpr int kSlotBytes = kInt4 ? kInt4Slot : kByteSlot;
  static constexpr int kRingBytes = kSlots * kSlotBytes;

  __device__ SlabStream(const FewRows& work, std::byte* ring)
      : work_(work), ring_(ring), tile_(first_tile()) {
    if (warp() >= work.slabs_per_tile) tile_ = work.slabs.units;  // nothing to do
    if (tile_ < work.slabs.units) begin_tile();
    for (int i = 0; i < kSlots - 1; ++i) load_one();
  }

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
    while (tile_ >= work_.slabs.list[job_].end) ++job_;
    const DeviceWeight& weight = work_.slabs.list[job_].weight;
    const int64_t tile = tile_ - (job_ == 0 ? 0 : work_.slabs.list[job_ - 1].end);
    const int64_t slabs = work_.slabs_per_tile;
    const auto* scales = static_cast<const std::byte*>(weight.scales);
    slab_ = warp();
    slab_bytes_ = kInt4 ? 1024 : slab_bytes(weight.format);
    values_ = weight.values + (tile * slabs + slab_) * slab_bytes_ + lane() * 16;
    scale_bytes_ = 0;
    if (kInt4 || weight.format == WeightFormat::int4_group) {
      scale_bytes_ = kInt4 ? kInt4ScaleBytes : kSlabIn / weight.group * kTileOut * 2;
      scales_ = scales + (tile * slabs + slab_) * scale_bytes_ + lane() * 16;
    } else if (weight.format == WeightFormat::fp8_block) {
      scale_bytes_ = sizeof(float);
      scales_ = scales + (tile / (kFp8Block / kTileOut) * slabs + slab_) * scale_bytes_;
    }
  }

  __device__ void next_tile() {
    tile_ += work_.teams;
    if (tile_ >= work_.slabs.units) return;
    if (!kInt4 || tile_ >= work_.slabs.list[job_].end) return begin_tile();
    // The same weight: as far again, less what this warp has had of the tile.
    const int64_t slabs = int64_t(work_.teams) * work_.slabs_per_tile - (slab_ - warp());
    values_ += slabs * 1024;
    scales_ += slabs * kInt4ScaleBytes;
    slab_ = warp();
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
      if (slab_ >= work_.slabs_per_tile) next_tile();
    }
    end_copy_group();  // also an empty group: groups are counted
    fill_ = fill_ + kSlotBytes == kRingBytes ? 0 : fill_ + kSlotBytes;
  }

  const FewRows& work_;
  std::byte* ring_;
  int fill_ = 0, use_ = 0;  // bytes from the ring's start
  // Of the next load.
  int tile_, job_ = 0, slab_ = 0;
  int slab_bytes_ = 0, scale_bytes_ = 0;
  const std::byte* values_ = nullptr;  // this lane's
  const std::byte* scales_ = nullptr;
};

// What a block knows of its rows, in shared memory; slab after slab, each with all rows.
struct RoundedRows {
  std::byte* inputs;
  std::byte* units;  // a float each; an IntegerSlab for int4
  int rows;

  __device__ float* unit(int slab) const { return reinterpret_cast<float*>(units) + slab * rows; }
  __device__ IntegerSlab* integers(int slab) const {
    return reinterpret_cast<IntegerSlab*>(units) + slab * rows;
  }
};

// Rounds all rows, a slab of a row per warp at a time.
template <bool kInt4>
__device__ __forceinline__ void round_inputs(const FewRows& work, int64_t first_row,
                                             const RoundedRows& to) {
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
  const LinearInput& input = work.input;
  const int slabs = work.slabs_per_tile;
  constexpr int kStep = kTeams * kWarps;
  constexpr int kAtOnce = 4;  // rounded side by side
  constexpr int kRounds = 3;  // whose loads are on their way
  const int items = slabs * to.rows;
  const auto row_of = [&](int item) {  // few rows: cheaper than a division
    int row = 0;
    while (item >= (row + 1) * slabs) ++row;
    return row;
  };
  for (int begin = warp; begin < items; begin += kStep * kAtOnce * kRounds) {
    float4 x[kRounds][kAtOnce];
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      if (begin + round * kAtOnce * kStep >= items) continue;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int item = min(begin + (round * kAtOnce + i) * kStep, items - 1);
        const int row = row_of(item);
        const float* from = input.x + (first_row + row) * input.in;
        const int64_t column = (item - row * slabs) * kSlabIn + lane * 4;
        x[round][i] = input.quads ? load_quad<true>(from, column, input.in)
                                  : load_quad<false>(from, column, input.in);
      }
    }
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      if (begin + round * kAtOnce * kStep >= items) continue;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {  // past the end: the last once more, to the same place
        const int item = min(begin + (round * kAtOnce + i) * kStep, items - 1);
        const int row = row_of(item), slab = item - row * slabs;
        std::byte* place = to.inputs + slab * slab_input_bytes(to.rows);
        if constexpr (kInt4) {
          const IntegerSlab rounded = round_to_integers(x[round][i], row, to.rows, place);
          if (lane == 0) to.integers(slab)[row] = rounded;
        } else {
          const float unit = round_slab(x[round][i], row, to.rows, place);
          if (lane == 0) to.unit(slab)[row] = unit;
        }
      }
    }
  }
  __syncthreads();
}

// Where a lane finds its part of a slab's inputs. Rows past the last are copies of it: their sums
// are not written.
template <int kRowTiles>
struct LaneRows {
  int halves[kRowTiles];  // bytes from the slab's start
  int pair_bytes;         // from one pair of steps to the next
  int2 sum_rows[kRowTiles];

  __device__ explicit LaneRows(int rows) {
    const int lane = int(threadIdx.x) % kWarp;
    pair_bytes = slab_offset(1, 0, 0, rows);
#pragma unroll
    for (int t = 0; t < kRowTiles; ++t) {
      const int row = t * kMmaRows;
      halves[t] = slab_offset(0, min(row + lane / 4, rows - 1), lane % 4, rows);
      sum_rows[t] =
          make_int2(min(row + lane % 4 * 2, rows - 1), min(row + lane % 4 * 2 + 1, rows - 1));
    }
  }
};

// totals += slab x inputs. The steps of a slab are several chains of sums: an instruction waits for
// the one before it in its chain. scales(group) are those of the lane's outputs.
template <class Format, int kStepsPerScale, int kRowTiles, class Scales>
__device__ __forceinline__ void add_slab(Sums (&totals)[kRowTiles], const std::byte* slab,
                                         const RoundedRows& from, int index,
                                         const LaneRows<kRowTiles>& lane_rows,
                                         const Scales& scales) {
  constexpr int kSteps = kStepsPerScale < 4 ? kStepsPerScale : 4;  // of a chain
  constexpr int kChains = kStepsPerSlab / kSteps;
  constexpr int kChainsPerScale = kStepsPerScale / kSteps;  // 1 or 2
  const std::byte* inputs = from.inputs + index * slab_input_bytes(from.rows);
  uint32_t words[Format::kWords];
  load_lane_words(slab, 0, words);
  Sums sums[kRowTiles][kChains];
#pragma unroll
  for (int pair = 0; pair < kSteps / 2; ++pair) {
    uint4 x[kRowTiles][kChains];
#pragma unroll
    for (int t = 0; t < kRowTiles; ++t)
#pragma unroll
      for (int chain = 0; chain < kChains; ++chain)
        x[t][chain] = *reinterpret_cast<const uint4*>(
            inputs + lane_rows.halves[t] + (chain * kSteps / 2 + pair) * lane_rows.pair_bytes);
#pragma unroll
    for (int odd = 0; odd < 2; ++odd)
#pragma unroll
      for (int chain = 0; chain < kChains; ++chain) {
        const WeightFragment w = Format::fragment(words, chain * kSteps + 2 * pair + odd);
#pragma unroll
        for (int t = 0; t < kRowTiles; ++t)
          mma(sums[t][chain], w, odd ? x[t][chain].z : x[t][chain].x,
              odd ? x[t][chain].w : x[t][chain].y);
      }
  }
  const float* units = from.unit(index);
#pragma unroll
  for (int chain = 0; chain < kChains; chain += kChainsPerScale) {
    const float2 scale = scales(chain / kChainsPerScale);
#pragma unroll
    for (int t = 0; t < kRowTiles; ++t) {
      const float even = units[lane_rows.sum_rows[t].x], odd = units[lane_rows.sum_rows[t].y];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float sum = sums[t][chain].v[i];
        if (kChainsPerScale == 2) sum = __fadd_rn(sum, sums[t][chain + 1].v[i]);
        sum = __fmul_rn(sum, i < 2 ? scale.x : scale.y);
        totals[t].v[i] = __fmaf_rn(sum, i % 2 == 0 ? even : odd, totals[t].v[i]);
      }
    }
  }
}

template <int kRowTiles>
__device__ __forceinline__ void add_slab_of(const DeviceWeight& weight, Sums (&totals)[kRowTiles],
                                            const std::byte* slab, const RoundedRows& from,
                                            int index, const LaneRows<kRowTiles>& lane_rows) {
  if (weight.format == WeightFormat::int4_group) {
    const auto scales = [&](int group) { return lane_scales(slab + 1024 + group * 32); };
    if (weight.group == 64)
      add_slab<Int4Slab, 4>(totals, slab, from, index, lane_rows, scales);
    else
      add_slab<Int4Slab, 2>(totals, slab, from, index, lane_rows, scales);
  } else if (weight.format == WeightFormat::int8_row) {  // its scale is the same for all slabs
    add_slab<Int8Slab, 8>(totals, slab, from, index, lane_rows,
                          [](int) { return make_float2(1, 1); });
  } else {
    const float scale = *reinterpret_cast<const float*>(slab + 2048) * kFp8Factor;
    add_slab<Fp8Slab, 8>(totals, slab, from, index, lane_rows,
                         [&](int) { return make_float2(scale, scale); });
  }
}

// Sums of one tile, 8 * kRowTiles rows of it, from slabs of any format but int4 in groups of 128.
template <int kRowTiles>
struct TileOfAny {
  using Lanes = LaneRows<kRowTiles>;
  Sums totals[kRowTiles];

  __device__ void add(const DeviceWeight& weight, const std::byte* slab, const RoundedRows& from,
                      int index, const Lanes& lanes) {
    add_slab_of(weight, totals, slab, from, index, lanes);
  }
  // To row r of `partials`, from the lane's output on.
  __device__ void write(float* partials, int rows) const {
    const int lane = int(threadIdx.x) % kWarp;
#pragma unroll
    for (int t = 0; t < kRowTiles; ++t)
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        const int row = t * kMmaRows + lane % 4 * 2 + v % 2;
        if (row < rows) partials[row * kPartialStride + v / 2 * 8] = totals[t].v[v];
      }
  }
};

// The same from int4 in groups of 128, as published files have it.
template <int kRowTiles>
struct TileOfInt4 {
  using Lanes = IntegerLanes<kRowTiles>;
  float2 totals[kRowTiles] = {};

  __device__ void add(const DeviceWeight&, const std::byte* slab, const RoundedRows& from,
                      int index, const Lanes& lanes) {
    add_int4_slab(totals, slab, from.inputs + index * slab_input_bytes(from.rows),
                  from.integers(index), lanes);
  }
  __device__ void write(float* partials, int rows) const {
    const int lane = int(threadIdx.x) % kWarp;
#pragma unroll
    for (int t = 0; t < kRowTiles; ++t) {
      const int row = t * kIntegerRows + lane % 4;
      if (row >= rows) continue;
      partials[row * kPartialStride] = totals[t].x;
      partials[row * kPartialStride + 8] = totals[t].y;
    }
  }
};

// Adds up what the warps have of some tiles, of which `first` is the first, and writes it.
__device__ __forceinline__ void finish_tiles(const FewRows& work, int first, int64_t first_row,
                                             int rows, const float* partials) {
  const int place = int(threadIdx.x) / kTileOut;  // of tiles x rows
  const int slot = place / rows, row = place % rows;
  const int tile = first + slot * int(gridDim.x);  // of all teams
  float before = 0, scale = 1;                     // asked for now, there after the barrier
  float* out = nullptr;
  if (slot < kTeams * work.tiles_at_once && tile < work.slabs.units) {
    int job = 0;
    while (tile >= work.slabs.list[job].end) ++job;
    const LinearJob& current = work.slabs.list[job];
    const int job_begin = job == 0 ? 0 : work.slabs.list[job - 1].end;
    const int64_t output = int64_t(tile - job_begin) * kTileOut + int(threadIdx.x) % kTileOut;
    if (output < current.weight.out) {
      out = current.out + (first_row + row) * current.weight.out + output;
      if (work.add) before = *out;
      if (current.weight.format == WeightFormat::int8_row)
        scale = static_cast<const float*>(current.weight.scales)[output];
    }
  }
  __syncthreads();
  if (out == nullptr) return;
  const int warps = min(kWarps, work.slabs_per_tile);
  const float* part = partials + (slot * kWarps * work.rows_per_block + row) * kPartialStride +
                      int(threadIdx.x) % kTileOut;
  float sum = 0;
  for (int w = 0; w < warps; ++w) sum += part[w * work.rows_per_block * kPartialStride];
  sum *= scale;
  *out = work.add ? before + sum : sum;
}

template <int kRowTiles, int kSlots, bool kInt4>
__global__ void __launch_bounds__(kThreads, 1)
    few_rows_kernel(const __grid_constant__ FewRows work) {
  let_next_begin();
  extern __shared__ __align__(16) std::byte shared[];
  using Stream = SlabStream<kSlots, kInt4>;
  const int lane = int(threadIdx.x) % kWarp;
  const int64_t first_row = int64_t(blockIdx.y) * work.rows_per_block;
  const int rows = int(min(int64_t(work.rows_per_block), work.input.rows - first_row));

  Stream stream(work, shared + int(threadIdx.x) / kWarp * Stream::kRingBytes);
  // Floats go while the rings fill.
  if (int(blockIdx.x) < work.floats.units && blockIdx.y == 0 && threadIdx.x < kFloatThreads) {
    if (work.input.quads)
      float_outputs<true, 3>(work.input, work.floats, int(blockIdx.x), int(gridDim.x), work.add);
    else
      float_outputs<false, 2>(work.input, work.floats, int(blockIdx.x), int(gridDim.x), work.add);
  }
  wait_for_inputs();
  const RoundedRows rounded{shared + work.inputs_at, shared + work.units_at, rows};
  round_inputs<kInt4>(work, first_row, rounded);

  // Two sets of partial sums take turns: the next may be finished by some warps while others still
  // read the last.
  using Tile = std::conditional_t<kInt4, TileOfInt4<kRowTiles>, TileOfAny<kRowTiles>>;
  const typename Tile::Lanes lanes(rows);
  auto* partials = reinterpret_cast<float*>(shared + work.partials_at);
  const int tile_partials = kWarps * work.rows_per_block * kPartialStride;
  int job = 0, turn = 0;
  for (int first = int(blockIdx.x); first < work.slabs.units;
       first += work.tiles_at_once * work.teams, turn ^= 1) {
    float* set = partials + turn * kTeams * work.tiles_at_once * tile_partials;
    float* own = set + team() * tile_partials + lane / 4 +
                 warp_of_team() * work.rows_per_block * kPartialStride;
    int tile = first + team() * int(gridDim.x);
    for (int i = 0; i < work.tiles_at_once && tile < work.slabs.units; ++i) {
      while (tile >= work.slabs.list[job].end) ++job;
      Tile sums;
      for (int slab = warp_of_team(); slab < work.slabs_per_tile; slab += kWarps)
        sums.add(work.slabs.list[job].weight, stream.next(), rounded, slab, lanes);
      sums.write(own, rows);
      own += kTeams * tile_partials;
      tile += work.teams;
    }
    finish_tiles(work, first, first_row, rows, set);
  }
}

template <bool kQuads>
__global__ void __launch_bounds__(kFloatThreads)
    floats_kernel(const __grid_constant__ LinearInput input,
                  const __grid_constant__ LinearJobs jobs, bool add) {
  let_next_begin();
  float_outputs<kQuads, 4>(input, jobs, int(blockIdx.x), int(gridDim.x), add);
}

using FewRowsKernel = void (*)(FewRows);

// For up to so many rows.
FewRowsKernel few_rows_kernel_for(bool int4, int slots, int rows) {
  if (int4 && slots == 8)
    return rows <= 4   ? few_rows_kernel<1, 8, true>
           : rows <= 8 ? few_rows_kernel<2, 8, true>
                       : few_rows_kernel<4, 8, true>;
  if (int4)
    return rows <= 4   ? few_rows_kernel<1, 3, true>
           : rows <= 8 ? few_rows_kernel<2, 3, true>
                       : few_rows_kernel<4, 3, true>;
  if (slots == 4) return rows <= 8 ? few_rows_kernel<1, 4, false> : few_rows_kernel<2, 4, false>;
  return rows <= 8 ? few_rows_kernel<1, 2, false> : few_rows_kernel<2, 2, false>;
}

void launch_floats(const Launcher& launcher, const LinearInput& input, const LinearJobs& floats,
                   bool add) {
  const int blocks = std::min(floats.units, 8 * launcher.multiprocessors);
  launch(launcher, unsigned(blocks), kFloatThreads, 0,
         input.quads ? floats_kernel<true> : floats_kernel<false>, input, floats, add);
}

}  // namespace

namespace {

// `int4`: all slabs are, in groups of 128.
void launch_few_rows(const Launcher& launcher, const LinearInput& input, const LinearJobs& slabs,
                     const LinearJobs& floats, bool int4, bool add) {
  FewRows work{};
  work.input = input;
  work.slabs = slabs;
  work.floats = floats;
  work.slabs_per_tile = int32_t(slab_count(input.in));
  work.add = add;
  const int slot_bytes = int4 ? kInt4Slot : kByteSlot;

  const int teams = kTeams * launcher.multiprocessors;
  const int tiles_per_team = (slabs.units + teams - 1) / teams;
  const auto shared_bytes = [&](int slots, int rows) {
    work.rows_per_block = rows;
    work.tiles_at_once = std::min(std::max(kMostPlaces / rows, 1), tiles_per_team);
    const int sets = work.tiles_at_once < tiles_per_team ? 2 : 1;
    work.inputs_at = kTeams * kWarps * slots * slot_bytes;
    work.units_at = work.inputs_at + work.slabs_per_tile * slab_input_bytes(rows);
    work.partials_at = work.units_at +
                       work.slabs_per_tile * rows * int(int4 ? sizeof(IntegerSlab) : sizeof(float));
    return work.partials_at +
           sets * kTeams * work.tiles_at_once * kWarps * rows * kPartialStride * int(sizeof(float));
  };
  // One block per multiprocessor, and never two: the rings are large enough to see to that. Blocks
  // of half the size would let the next kernel begin earlier, but not on all multiprocessors alike.
  int rows = int(input.rows), slots = int4 ? 8 : 4;
  const int room = launcher.shared_bytes - kFloatSharedBytes;
  if (shared_bytes(slots, rows) > room) slots = int4 ? 3 : 2;
  while (rows > 1 && shared_bytes(slots, rows) > room) rows = (rows + 1) / 2;
  const int bytes = shared_bytes(slots, rows);
  check(bytes <= room, "linear: ", input.in, " inputs need ", bytes,
        " bytes of shared memory, a block has ", room);
  const int blocks = std::min(std::max(slabs.units, floats.units), launcher.multiprocessors);
  work.teams = kTeams * blocks;
  const FewRowsKernel kernel = few_rows_kernel_for(int4, slots, rows);
  allow_shared(kernel, size_t(bytes));
  launch(launcher, dim3(unsigned(blocks), unsigned((input.rows + rows - 1) / rows)), kThreads,
         size_t(bytes), kernel, work);
}

}  // namespace

void linear_few_rows(const Launcher& launcher, const LinearInput& input, const LinearJobs& slabs,
                     const LinearJobs& floats, bool add) {
  // Those whose activations become integers go by themselves.
  LinearJobs int4, others;
  for (int i = 0; i < slabs.count; ++i) {
    const LinearJob& job = slabs.list[i];
    const bool integers =
        job.weight.format == WeightFormat::int4_group && job.weight.group == kSlabIn;
    (integers ? int4 : others).add(job.weight, job.out, tile_count(job.weight.out));
  }
  if (int4.count > 0) launch_few_rows(launcher, input, int4, floats, true, add);
  if (others.count > 0)
    launch_few_rows(launcher, input, others, int4.count > 0 ? LinearJobs{} : floats, false, add);
  if (slabs.count == 0 && floats.count > 0) launch_floats(launcher, input, floats, add);
}

}  // namespace slip
