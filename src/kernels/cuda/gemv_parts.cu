// Linear layers of few rows and wide inputs, the down projections of dense models, in parts
// (linear_parts()). Sums are taken part by part, in one of two ways: a block has all parts of its
// tiles, where the few rows of so many inputs fit beside the longest ring, or it has one of them,
// and the last of the blocks that have the same tiles adds up what all of them left.
#include <optional>

#include "kernels/cuda/few_rows_plan.cuh"
#include "kernels/cuda/finish_tiles.cuh"
#include "kernels/cuda/last_block.cuh"
#include "kernels/cuda/tile_sums.cuh"

namespace slip {
namespace {

using namespace gemv;

// Where a thread's output of a tile of part 0 is left; the other parts' follow.
__device__ __forceinline__ float* place_of_sum(const FewRows& work, int tile, int64_t row) {
  return work.input.parts.sums + (row * work.slabs.units + tile) * kTileOut +
         int(threadIdx.x) % kTileOut;
}
__device__ __forceinline__ int64_t sums_of_part(const FewRows& work) {
  return work.input.rows * work.slabs.units * kTileOut;
}

// Adds up what the warps have of some tiles, of which `first` is the first, and leaves it.
__device__ __forceinline__ void leave_sums(const FewRows& work, int first, int64_t first_row,
                                           int rows, const float* partials) {
  const FinishPlace place(first, rows);
  __syncthreads();
  if (!place.exists(work)) return;
  place_of_sum(work, place.tile, first_row + place.row)[int64_t(blockIdx.z) * sums_of_part(work)] =
      place.sum(work, partials);
}

// The block that comes last: all tiles that it and its likes had.
__device__ __forceinline__ void add_parts(const FewRows& work, int64_t first_row, int rows) {
  const int step = int(gridDim.x);
  const int tiles = (work.slabs.units - int(blockIdx.x) + step - 1) / step;
  const int64_t part = sums_of_part(work);
#pragma unroll 1
  for (int place = int(threadIdx.x) / kTileOut; place < tiles * rows;
       place += kThreads / kTileOut) {
    const int tile = int(blockIdx.x) + place / rows * step;
    const int64_t row = first_row + place % rows;
    TileOutput output;
    output.find(work, tile, row);
    if (output.out == nullptr) continue;
    const float* sums = place_of_sum(work, tile, row);
    float sum = 0;
#pragma unroll 4
    for (int p = 0; p < int(gridDim.z); ++p) sum += __ldcg(sums + p * part);
    output.write(work, sum);
  }
}

// A part of rows that come rounded. What a thread has of their units is on its way with the rest.
__device__ __forceinline__ void copy_part(const std::byte* from, const FewRows& work,
                                          const BlockSlabs<BlockHas::part>& part,
                                          const RoundedRows& to) {
  static_assert(kPartSlabs * kFewLinearRows <= kThreads);
  const int slab_bytes = slab_input_bytes(to.rows), thread = int(threadIdx.x);
  const auto* units = reinterpret_cast<const uint2*>(from + work.slabs_per_tile * slab_bytes) +
                      part.first * to.rows;
  static_assert(sizeof(uint2) == sizeof(IntegerSlab));
  uint2 unit;
  if (thread < part.count * to.rows) unit = __ldcg(units + thread);
  copy_rounded(from + part.first * slab_bytes, part.count * slab_bytes, to.inputs);
  if (thread < part.count * to.rows) reinterpret_cast<uint2*>(to.units)[thread] = unit;
}

__device__ __forceinline__ void finish_part(const FewRows& work, int64_t first_row, int rows) {
  uint32_t& counter = work.input.parts.counters[blockIdx.y * gridDim.x + blockIdx.x];
  if (finishes_last(counter, gridDim.z)) add_parts(work, first_row, rows);
}

template <int kLength, int kMostRows>
__global__ void __launch_bounds__(kThreads, 1)
    int4_part_kernel(const __grid_constant__ FewRows work) {
  let_next_begin();
  std::byte* const shared = launch_memory;
  const int rows = int(work.input.rows);
  Int4Runs<kLength, BlockHas::part> runs(work, shared);
  runs.fill();
  const BlockSlabs<BlockHas::part> part(work);
  const RoundedRows rounded{shared + work.inputs_at, shared + work.units_at, rows};
  wait_for_inputs();
  copy_part(work.input.rounded, work, part, rounded);
  clear_units_behind(rounded, part.count);
  __syncthreads();
  walk_runs<kMostRows>(work, runs, rounded, reinterpret_cast<float*>(shared + work.partials_at),
                       [&](int first, const float* set) { leave_sums(work, first, 0, rows, set); });
  finish_part(work, 0, rows);
}

template <int kRowTiles, int kSlots>
__global__ void __launch_bounds__(kThreads, 1)
    few_rows_part_kernel(const __grid_constant__ FewRows work) {
  let_next_begin();
  std::byte* const shared = launch_memory;
  using Stream = SlabStream<kSlots, BlockHas::part>;
  const int64_t first_row = int64_t(blockIdx.y) * work.rows_per_block;
  const int rows = int(min(int64_t(work.rows_per_block), work.input.rows - first_row));
  Stream stream(work, shared + int(threadIdx.x) / kWarp * Stream::kRingBytes);
  const BlockSlabs<BlockHas::part> part(work);
  const RoundedRows rounded{shared + work.inputs_at, shared + work.units_at, rows};
  round_plain<false>(SlabItems{work.input, first_row, rows, part.count, part.first}, rounded,
                     [] {});
  __syncthreads();
  walk_tiles<kRowTiles>(
      work, stream, rounded, reinterpret_cast<float*>(shared + work.partials_at),
      [&](int first, const float* set) { leave_sums(work, first, first_row, rows, set); });
  finish_part(work, first_row, rows);
}

// What the warps have of an output, part by part: as finishing blocks of one part each would add it
// up. `part` is the first warp's of the first part.
__device__ __forceinline__ float sum_of_parts(const FewRows& work, const float* part, int rows) {
  float total = 0;
#pragma unroll 1
  for (int begin = 0; begin < work.slabs_per_tile; begin += work.slabs_per_part) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += part[w * rows * kPartialStride];
    total += sum;
    part += kWarps * rows * kPartialStride;
  }
  return total;
}

// All parts of a block's tiles, of up to kIntegerRows rows; work.tiles_at_once are all tiles of a
// team.
template <int kLength>
__global__ void __launch_bounds__(kThreads, 1)
    int4_all_parts_kernel(const __grid_constant__ FewRows work) {
  let_next_begin();
  std::byte* const shared = launch_memory;
  const int rows = int(work.input.rows), lane = int(threadIdx.x) % kWarp;
  Int4Runs<kLength, BlockHas::parts> runs(work, shared);
  runs.fill();
  const RoundedRows rounded{shared + work.inputs_at, shared + work.units_at, rows};
  wait_for_inputs();
  copy_rounded(work.input.rounded, rounded_bytes(rows, work.slabs_per_tile), rounded.inputs);
  clear_units_behind(rounded, work.slabs_per_tile);
  __syncthreads();

  auto* partials = reinterpret_cast<float*>(shared + work.partials_at);
  const int part_partials = kWarps * rows * kPartialStride;
  const int parts = (work.slabs_per_tile + work.slabs_per_part - 1) / work.slabs_per_part;
  const int tile_partials = parts * part_partials;
  float* own =
      partials + team() * tile_partials + warp_of_team() * rows * kPartialStride + lane / 4;
  const IntegerLanes<1> lanes(rows);
  while (!runs.ended()) {
    runs.add_run(rounded, lanes).write(own, rows);
    own += runs.begins_tile() ? part_partials + (kTeams - 1) * tile_partials : part_partials;
  }
  const FinishPlace place(int(blockIdx.x), rows);
  TileOutput output;  // asked for now, there after the barrier
  if (place.exists(work)) output.find(work, place.tile, place.row);
  __syncthreads();
  if (output.out)
    output.write(work, sum_of_parts(work,
                                    partials + place.slot * tile_partials +
                                        place.row * kPartialStride + int(threadIdx.x) % kTileOut,
                                    rows));
}

using PartsKernel = void (*)(FewRows);

// Parts have between 17 and kPartSlabs slabs.
constexpr int kPartLength = piece_length(kPartSlabs, 1);
static_assert(kPartLength == kLongPiece);
constexpr int kManyRowsPartLength = piece_length(kPartSlabs, int(kFewLinearRows));

PartsKernel int4_kernel_for(int rows) {
  switch (int4_most_rows(rows)) {
    case 1:
    case kIntegerRows: return int4_part_kernel<kPartLength, kIntegerRows>;
    case 8: return int4_part_kernel<kPartLength, 8>;
    case 12: return int4_part_kernel<kManyRowsPartLength, 12>;
    default: return int4_part_kernel<kManyRowsPartLength, 16>;
  }
}

template <int kSlots>
PartsKernel byte_kernel_for(int rows) {
  return rows <= kMmaRows ? few_rows_part_kernel<1, kSlots> : few_rows_part_kernel<2, kSlots>;
}

PartsKernel kernel_for(bool int4, const FewRows& work, const Plan& plan) {
  if (int4) return int4_kernel_for(plan.rows);
  return work.slots == kByteRings[0] ? byte_kernel_for<kByteRings[0]>(plan.rows)
                                     : byte_kernel_for<kByteRings[1]>(plan.rows);
}

// Whether blocks can have all parts of their tiles, beside the longest ring; then it sets the plan
// in `work`.
std::optional<Plan> plan_all_parts(const Launcher& launcher, FewRows& work) {
  const int blocks = std::min(work.slabs.units, launcher.multiprocessors);
  const auto rows = int(work.input.rows);
  work.rows_per_block = rows;
  work.teams = kTeams * blocks;
  work.tiles_at_once = (work.slabs.units + work.teams - 1) / work.teams;
  if (rows > kIntegerRows || work.tiles_at_once * rows > kMostPlaces) return {};
  const int parts = linear_parts(work.input.in);
  const int partials = kTeams * work.tiles_at_once * parts * kWarps * rows * kPartialStride;
  work.slots = work.early_slots = int4_rings(kPartLength)[0];
  work.inputs_at = kTeams * kWarps * work.slots * int4_slot_bytes(kPartLength);
  work.units_at = work.inputs_at + work.slabs_per_tile * slab_input_bytes(rows);
  work.partials_at = end_of_integers(work, work.slabs_per_tile, rows);
  const int bytes = work.partials_at + partials * int(sizeof(float));
  if (bytes > launcher.shared_bytes - kDeclaredBytes) return {};
  return Plan{.rows = rows, .bytes = bytes, .blocks = blocks};
}

}  // namespace

void linear_wide_rows(const Launcher& launcher, const LinearInput& input, const LinearJobs& slabs,
                      bool int4, bool add) {
  FewRows work = few_rows_work(input, slabs);
  work.add = add;
  if (int4) {
    check(input.rounded != nullptr, "linear: wide rows come rounded");
    if (const std::optional<Plan> plan = plan_all_parts(launcher, work)) {
      const PartsKernel kernel = int4_all_parts_kernel<kPartLength>;
      allow_shared(kernel, size_t(plan->bytes));
      return launch(launcher, unsigned(plan->blocks), kThreads, size_t(plan->bytes), kernel, work);
    }
  }
  const Plan plan = plan_few_rows(launcher, work, int4);
  check(!int4 || plan.rows == input.rows, "linear: rounded rows are taken all at once");
  work.early_slots = int4 ? work.slots : work.slots - 1;
  const PartsKernel kernel = kernel_for(int4, work, plan);
  allow_shared(kernel, size_t(plan.bytes));
  const auto passes = unsigned((input.rows + plan.rows - 1) / plan.rows);
  launch(launcher, dim3(unsigned(plan.blocks), passes, unsigned(linear_parts(input.in))), kThreads,
         size_t(plan.bytes), kernel, work);
}

}  // namespace slip
