// Linear layers of few rows: bound by the bytes of the weights. Every warp keeps a ring of slabs on
// their way to shared memory, across the tiles of its block, and begins with them before the input
// is there.
#include <algorithm>

#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/float_outputs.cuh"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/slab_formats.cuh"

namespace slip {
namespace {

constexpr int kWarps = 8;  // of a block; they share the slabs of a tile: warp w has w, w + 8, ...
constexpr int kThreads = kWarps * kWarp;
constexpr int kBlocksPerSm = 2;
constexpr int kPartialStride = kTileOut + 4;  // a row of partial sums; no two lanes meet in a bank

constexpr int kInt4Slot = 1024 + 128;  // a slab and its scales, at most 4 groups of 16
constexpr int kByteSlot = 2048 + 16;

struct FewRows {
  LinearInput input;
  LinearJobs slabs, floats;
  int32_t slabs_per_tile;
  int32_t rows_per_block;
  int32_t slot_bytes;
  int32_t float_blocks;  // the first of the grid
  // Of shared memory, behind the rings.
  int32_t inputs_at, units_at, partials_at;
  bool add;
};

// The slabs of a warp, in the order in which it uses them.
template <int kSlots>
class SlabStream {
 public:
  __device__ SlabStream(const FewRows& work, std::byte* ring, int block, int blocks)
      : work_(work), ring_(ring), blocks_(blocks), tile_(block) {
    if (warp() >= work.slabs_per_tile) tile_ = work.slabs.units;  // nothing to do
    if (tile_ < work.slabs.units) begin_tile();
    for (int i = 0; i < kSlots - 1; ++i) load_one();
  }

  // The next one; the slot of the one before it is filled again.
  __device__ const std::byte* next() {
    wait_for_copies<kSlots - 2>();
    __syncwarp();
    load_one();
    const std::byte* slab = ring_ + use_ * work_.slot_bytes;
    use_ = use_ + 1 == kSlots ? 0 : use_ + 1;
    return slab;
  }

 private:
  __device__ static int warp() { return int(threadIdx.x) / kWarp; }
  __device__ static int lane() { return int(threadIdx.x) % kWarp; }

  __device__ void begin_tile() {
    while (tile_ >= work_.slabs.list[job_].end) ++job_;
    const DeviceWeight& weight = work_.slabs.list[job_].weight;
    const int64_t tile = tile_ - (job_ == 0 ? 0 : work_.slabs.list[job_ - 1].end);
    const int64_t slabs = work_.slabs_per_tile;
    const auto* scales = static_cast<const std::byte*>(weight.scales);
    slab_ = warp();
    slab_bytes_ = slab_bytes(weight.format);
    values_ = weight.values + (tile * slabs + slab_) * slab_bytes_ + lane() * 16;
    scale_bytes_ = 0;
    if (weight.format == WeightFormat::int4_group) {
      scale_bytes_ = kSlabIn / weight.group * kTileOut * 2;
      scales_ = scales + (tile * slabs + slab_) * scale_bytes_ + lane() * 16;
    } else if (weight.format == WeightFormat::fp8_block) {
      scale_bytes_ = sizeof(float);
      scales_ = scales + (tile / (kFp8Block / kTileOut) * slabs + slab_) * scale_bytes_;
    }
  }

  __device__ void load_one() {
    if (tile_ < work_.slabs.units) {
      std::byte* slot = ring_ + fill_ * work_.slot_bytes + lane() * 16;
      copy_16_async(slot, values_);
      copy_16_async(slot + 512, values_ + 512);
      if (slab_bytes_ == 1024) {
        if (lane() * 16 < scale_bytes_) copy_16_async(slot + 1024, scales_);
      } else {
        copy_16_async(slot + 1024, values_ + 1024);
        copy_16_async(slot + 1536, values_ + 1536);
        if (lane() * 4 < scale_bytes_) copy_4_async(slot + 2048, scales_);
      }
      values_ += kWarps * slab_bytes_;
      scales_ += kWarps * scale_bytes_;
      slab_ += kWarps;
      if (slab_ >= work_.slabs_per_tile) {
        tile_ += blocks_;
        if (tile_ < work_.slabs.units) begin_tile();
      }
    }
    end_copy_group();  // also an empty group: groups are counted
    fill_ = fill_ + 1 == kSlots ? 0 : fill_ + 1;
  }

  const FewRows& work_;
  std::byte* ring_;
  int blocks_;
  int fill_ = 0, use_ = 0;  // slots
  // Of the next load.
  int tile_, job_ = 0, slab_ = 0;
  int slab_bytes_ = 0, scale_bytes_ = 0;
  const std::byte* values_ = nullptr;  // this lane's
  const std::byte* scales_ = nullptr;
};

// Rounds the slabs that this warp will use; no other reads them.
__device__ __forceinline__ void round_inputs(const FewRows& work, int64_t first_row, int rows,
                                             std::byte* inputs, float* units) {
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
  const LinearInput& input = work.input;
  const int slabs = (work.slabs_per_tile - warp + kWarps - 1) / kWarps;  // may be none
  const int items = slabs * rows;
  constexpr int kAtOnce = 8;  // loads on their way
  for (int begin = 0; begin < items; begin += kAtOnce) {
    float4 x[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int item = min(begin + i, items - 1);
      const int slab = warp + item / rows * kWarps;
      const float* row = input.x + (first_row + item % rows) * input.in;
      const int64_t column = int64_t(slab) * kSlabIn + lane * 4;
      x[i] = input.quads ? load_quad<true>(row, column, input.in)
                         : load_quad<false>(row, column, input.in);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int item = begin + i;
      if (item >= items) break;
      const int slab = warp + item / rows * kWarps, row = item % rows;
      const float unit = round_slab(x[i], row, rows, inputs + slab * slab_input_bytes(rows));
      if (lane == 0) units[slab * rows + row] = unit;
    }
  }
  __syncwarp();
}

// Where a lane finds its part of a slab's inputs. Rows past the last are copies of it: their sums
// are not written.
template <int kRowTiles>
struct LaneRows {
  int halves[kRowTiles];  // bytes from the slab's start
  int pair_bytes;         // from one pair of steps to the next
  int2 unit_rows[kRowTiles];

  __device__ explicit LaneRows(int rows) {
    const int lane = int(threadIdx.x) % kWarp;
    pair_bytes = slab_offset(1, 0, 0, rows);
#pragma unroll
    for (int t = 0; t < kRowTiles; ++t) {
      const int row = t * kMmaRows;
      halves[t] = slab_offset(0, min(row + lane / 4, rows - 1), lane % 4, rows);
      unit_rows[t] =
          make_int2(min(row + lane % 4 * 2, rows - 1), min(row + lane % 4 * 2 + 1, rows - 1));
    }
  }
};

// totals += slab x inputs. The steps of a slab are several chains of sums: an instruction waits for
// the one before it in its chain. scales(group) are those of the lane's outputs.
template <class Format, int kStepsPerScale, int kRowTiles, class Scales>
__device__ __forceinline__ void add_slab(Sums (&totals)[kRowTiles], const std::byte* slab,
                                         const std::byte* inputs, const float* units,
                                         const LaneRows<kRowTiles>& lane_rows,
                                         const Scales& scales) {
  constexpr int kSteps = kStepsPerScale < 4 ? kStepsPerScale : 4;  // of a chain
  constexpr int kChains = kStepsPerSlab / kSteps;
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
#pragma unroll
  for (int chain = 0; chain < kChains; ++chain) {
    const float2 scale = scales(chain * kSteps / kStepsPerScale);
#pragma unroll
    for (int t = 0; t < kRowTiles; ++t) {
      const int2 rows = lane_rows.unit_rows[t];
      add_scaled(totals[t], sums[t][chain], scale, make_float2(units[rows.x], units[rows.y]));
    }
  }
}

template <int kRowTiles>
__device__ __forceinline__ void add_slab_of(const DeviceWeight& weight, Sums (&totals)[kRowTiles],
                                            const std::byte* slab, const std::byte* inputs,
                                            const float* units,
                                            const LaneRows<kRowTiles>& lane_rows) {
  const auto int4_scales = [&](int group) { return lane_scales(slab + 1024 + group * 32); };
  if (weight.format == WeightFormat::int4_group) {
    if (weight.group == 128)
      add_slab<Int4Slab, 8>(totals, slab, inputs, units, lane_rows, int4_scales);
    else if (weight.group == 64)
      add_slab<Int4Slab, 4>(totals, slab, inputs, units, lane_rows, int4_scales);
    else
      add_slab<Int4Slab, 2>(totals, slab, inputs, units, lane_rows, int4_scales);
  } else if (weight.format == WeightFormat::int8_row) {  // its scale is the same for all slabs
    add_slab<Int8Slab, 8>(totals, slab, inputs, units, lane_rows,
                          [](int) { return make_float2(1, 1); });
  } else {
    const float scale = *reinterpret_cast<const float*>(slab + 2048) * kFp8Factor;
    add_slab<Fp8Slab, 8>(totals, slab, inputs, units, lane_rows,
                         [&](int) { return make_float2(scale, scale); });
  }
}

// Adds up what the warps have and writes it. Two sets of partial sums take turns: the next tile may
// be finished by some warps while others still read here.
template <int kRowTiles>
__device__ __forceinline__ void finish_tile(const FewRows& work, const LinearJob& job, int tile,
                                            int64_t first_row, int rows,
                                            const Sums (&totals)[kRowTiles], float* partials) {
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
  const int warps = min(kWarps, work.slabs_per_tile);
  const int row = int(threadIdx.x) / kTileOut;
  const int64_t output = int64_t(tile) * kTileOut + int(threadIdx.x) % kTileOut;
  const bool mine = row < rows && output < job.weight.out;
  float* out = job.out + (first_row + row) * job.weight.out + output;
  float before = 0, scale = 1;  // asked for now, there after the barrier
  if (mine && work.add) before = *out;
  if (mine && job.weight.format == WeightFormat::int8_row)
    scale = static_cast<const float*>(job.weight.scales)[output];

  const int warp_stride = work.rows_per_block * kPartialStride;
  float* own = partials + warp * warp_stride + lane / 4;
#pragma unroll
  for (int t = 0; t < kRowTiles; ++t)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = t * kMmaRows + lane % 4 * 2 + i % 2;
      if (r < rows) own[r * kPartialStride + i / 2 * 8] = totals[t].v[i];
    }
  __syncthreads();
  if (!mine) return;
  const float* part = partials + row * kPartialStride + int(threadIdx.x) % kTileOut;
  float sum = 0;
  for (int w = 0; w < warps; ++w) sum += part[w * warp_stride];
  sum *= scale;
  *out = work.add ? before + sum : sum;
}

template <int kRowTiles, int kSlots>
__device__ __forceinline__ void slab_tiles(const FewRows& work) {
  extern __shared__ __align__(16) std::byte shared[];
  const int warp = int(threadIdx.x) / kWarp;
  const int block = int(blockIdx.x) - work.float_blocks;
  const int blocks = int(gridDim.x) - work.float_blocks;
  const int64_t first_row = int64_t(blockIdx.y) * work.rows_per_block;
  const int rows = int(min(int64_t(work.rows_per_block), work.input.rows - first_row));

  SlabStream<kSlots> stream(work, shared + warp * kSlots * work.slot_bytes, block, blocks);
  let_next_begin();
  wait_for_inputs();
  std::byte* inputs = shared + work.inputs_at;
  auto* units = reinterpret_cast<float*>(shared + work.units_at);
  auto* partials = reinterpret_cast<float*>(shared + work.partials_at);
  round_inputs(work, first_row, rows, inputs, units);

  const LaneRows<kRowTiles> lane_rows(rows);
  const int partial_set = kWarps * work.rows_per_block * kPartialStride;
  int job = 0, turn = 0;
  for (int tile = block; tile < work.slabs.units; tile += blocks, turn ^= 1) {
    while (tile >= work.slabs.list[job].end) ++job;
    const LinearJob& current = work.slabs.list[job];
    const int first_tile = job == 0 ? 0 : work.slabs.list[job - 1].end;
    Sums totals[kRowTiles];
    for (int slab = warp; slab < work.slabs_per_tile; slab += kWarps)
      add_slab_of(current.weight, totals, stream.next(), inputs + slab * slab_input_bytes(rows),
                  units + slab * rows, lane_rows);
    finish_tile(work, current, tile - first_tile, first_row, rows, totals,
                partials + turn * partial_set);
  }
}

template <bool kQuads>
__global__ void __launch_bounds__(kThreads)
    floats_kernel(const __grid_constant__ LinearInput input,
                  const __grid_constant__ LinearJobs jobs, bool add) {
  let_next_begin();
  float_outputs<kQuads>(input, jobs, int(gridDim.x), add);
}

template <int kRowTiles, int kSlots>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    few_rows_kernel(const __grid_constant__ FewRows work) {
  if (int(blockIdx.x) >= work.float_blocks) return slab_tiles<kRowTiles, kSlots>(work);
  let_next_begin();
  if (blockIdx.y > 0) return;
  if (work.input.quads)
    float_outputs<true>(work.input, work.floats, work.float_blocks, work.add);
  else
    float_outputs<false>(work.input, work.floats, work.float_blocks, work.add);
}

using FewRowsKernel = void (*)(FewRows);

FewRowsKernel few_rows_kernel_for(bool two_tiles, int slots) {
  if (slots == 8) return two_tiles ? few_rows_kernel<2, 8> : few_rows_kernel<1, 8>;
  if (slots == 4) return two_tiles ? few_rows_kernel<2, 4> : few_rows_kernel<1, 4>;
  return two_tiles ? few_rows_kernel<2, 3> : few_rows_kernel<1, 3>;
}

void launch_floats(const Launcher& launcher, const LinearInput& input, const LinearJobs& floats,
                   bool add) {
  // Few outputs: blocks of fewer warps, so that all multiprocessors load.
  const int warps = std::clamp(floats.units / launcher.multiprocessors, 1, kWarps);
  const int blocks = std::min((floats.units + warps - 1) / warps, 16 * launcher.multiprocessors);
  launch(launcher, unsigned(blocks), unsigned(warps * kWarp), 0,
         input.quads ? floats_kernel<true> : floats_kernel<false>, input, floats, add);
}

}  // namespace

void linear_few_rows(const Launcher& launcher, const LinearInput& input, const LinearJobs& slabs,
                     const LinearJobs& floats, bool add) {
  if (slabs.count == 0) {
    if (floats.count > 0) launch_floats(launcher, input, floats, add);
    return;
  }
  FewRows work{};
  work.input = input;
  work.slabs = slabs;
  work.floats = floats;
  work.slabs_per_tile = int32_t(slab_count(input.in));
  work.add = add;
  bool int4 = true;
  for (int i = 0; i < slabs.count; ++i)
    int4 = int4 && slabs.list[i].weight.format == WeightFormat::int4_group;
  work.slot_bytes = int4 ? kInt4Slot : kByteSlot;

  const auto shared_bytes = [&](int slots, int rows) {
    work.rows_per_block = rows;
    work.inputs_at = kWarps * slots * work.slot_bytes;
    work.units_at = work.inputs_at + work.slabs_per_tile * slab_input_bytes(rows);
    work.partials_at = work.units_at + work.slabs_per_tile * rows * int(sizeof(float));
    return work.partials_at + 2 * kWarps * rows * kPartialStride * int(sizeof(float));
  };
  // As many slabs on their way as let two blocks run beside each other; then fewer; then fewer rows
  // per block, which read the weights again.
  constexpr int kReserved = 1024;  // of a block, for the system
  const int half = launcher.shared_bytes / kBlocksPerSm - kReserved;
  int rows = int(input.rows), slots = int4 ? 8 : 4;
  if (shared_bytes(slots, rows) > half) slots = 4;
  if (shared_bytes(slots, rows) > half) slots = 3;
  while (rows > 1 && shared_bytes(slots, rows) > launcher.shared_bytes) rows = (rows + 1) / 2;
  const int bytes = shared_bytes(slots, rows);
  check(bytes <= launcher.shared_bytes, "linear: ", input.in, " inputs need ", bytes,
        " bytes of shared memory, a block has ", launcher.shared_bytes);

  const int room = launcher.multiprocessors * (bytes <= half ? kBlocksPerSm : 1);
  work.float_blocks = std::min((floats.units + kWarps - 1) / kWarps, launcher.multiprocessors);
  // All blocks have equally many tiles: fewer that end together are faster than more, of which some
  // have one tile left when the others are done.
  const int most = std::max(room - work.float_blocks, room / 2);
  const int tiles_per_block = (slabs.units + most - 1) / most;
  const int blocks = (slabs.units + tiles_per_block - 1) / tiles_per_block;
  const FewRowsKernel kernel = few_rows_kernel_for(rows > kMmaRows, slots);
  allow_shared(kernel, size_t(bytes));
  launch(launcher,
         dim3(unsigned(work.float_blocks + blocks), unsigned((input.rows + rows - 1) / rows)),
         kThreads, size_t(bytes), kernel, work);
}

}  // namespace slip
