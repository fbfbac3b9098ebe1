// Linear layers of few rows and wide inputs, of which a block has but a part (linear_parts()): the
// down projections of dense models. The last block of those that have the same tiles adds up what
// all of them left, part by part.
#include "kernels/cuda/few_rows_plan.cuh"
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
__device__ __forceinline__ void leave_sums(const FewRows& work, int slabs, int first,
                                           int64_t first_row, int rows, const float* partials) {
  const FinishPlace place(first, rows);
  __syncthreads();
  if (!place.exists(work)) return;
  place_of_sum(work, place.tile, first_row + place.row)[int64_t(blockIdx.z) * sums_of_part(work)] =
      place.sum(work, partials, slabs);
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
                                          const BlockSlabs<true>& part, const RoundedRows& to) {
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

template <int kRowTiles, int kSlots, bool kInt4, bool kRounded>
__global__ void __launch_bounds__(kThreads, 1)
    few_rows_parts_kernel(const __grid_constant__ FewRows work) {
  let_next_begin();
  extern __shared__ __align__(16) std::byte shared[];
  using Stream = SlabStream<kSlots, kInt4, true>;
  const int64_t first_row = int64_t(blockIdx.y) * work.rows_per_block;
  const int rows = int(min(int64_t(work.rows_per_block), work.input.rows - first_row));

  Stream stream(work, shared + int(threadIdx.x) / kWarp * Stream::kRingBytes);
  const BlockSlabs<true> part(work);
  const RoundedRows rounded{shared + work.inputs_at, shared + work.units_at, rows};
  if constexpr (kRounded) {
    wait_for_inputs();
    copy_part(work.input.rounded, work, part, rounded);
  } else {
    const SlabItems items{work.input, first_row, rows, part.count, part.first};
    round_plain<kInt4>(items, rounded, [] {});
  }
  __syncthreads();

  auto* partials = reinterpret_cast<float*>(shared + work.partials_at);
  walk_tiles<TileSums<kInt4, kRowTiles>>(
      work, stream, rounded, partials, [&](int first, const float* set) {
        leave_sums(work, part.count, first, first_row, rows, set);
      });
  uint32_t& counter = work.input.parts.counters[blockIdx.y * gridDim.x + blockIdx.x];
  if (finishes_last(counter, gridDim.z)) add_parts(work, first_row, rows);
}

using PartsKernel = void (*)(FewRows);

template <int kSlots, bool kRounded>
PartsKernel int4_kernel_for(int rows) {
  return rows <= kIntegerRows       ? few_rows_parts_kernel<1, kSlots, true, kRounded>
         : rows <= 2 * kIntegerRows ? few_rows_parts_kernel<2, kSlots, true, kRounded>
         : rows <= 3 * kIntegerRows ? few_rows_parts_kernel<3, kSlots, true, kRounded>
                                    : few_rows_parts_kernel<4, kSlots, true, kRounded>;
}

template <bool kRounded>
PartsKernel int4_kernel_for(const Plan& plan) {
  return plan.slots == kInt4Rings[0]   ? int4_kernel_for<kInt4Rings[0], kRounded>(plan.rows)
         : plan.slots == kInt4Rings[1] ? int4_kernel_for<kInt4Rings[1], kRounded>(plan.rows)
                                       : int4_kernel_for<kInt4Rings[2], kRounded>(plan.rows);
}

template <int kSlots>
PartsKernel byte_kernel_for(int rows) {
  return rows <= kMmaRows ? few_rows_parts_kernel<1, kSlots, false, false>
                          : few_rows_parts_kernel<2, kSlots, false, false>;
}

PartsKernel kernel_for(bool int4, const Plan& plan, bool rounded) {
  if (int4) return rounded ? int4_kernel_for<true>(plan) : int4_kernel_for<false>(plan);
  return plan.slots == kByteRings[0] ? byte_kernel_for<kByteRings[0]>(plan.rows)
                                     : byte_kernel_for<kByteRings[1]>(plan.rows);
}

}  // namespace

void linear_wide_rows(const Launcher& launcher, const LinearInput& input, const LinearJobs& slabs,
                      bool int4, bool add) {
  FewRows work = few_rows_work(input, slabs);
  work.add = add;
  const std::span<const int> rings = int4 ? std::span<const int>(kInt4Rings) : kByteRings;
  const Plan plan = plan_few_rows(launcher, work, int4, rings);
  work.early_slots = plan.slots - 1;
  const PartsKernel kernel = kernel_for(int4, plan, input.rounded != nullptr);
  allow_shared(kernel, size_t(plan.bytes));
  const auto passes = unsigned((input.rows + plan.rows - 1) / plan.rows);
  launch(launcher, dim3(unsigned(plan.blocks), passes, unsigned(linear_parts(input.in))), kThreads,
         size_t(plan.bytes), kernel, work);
}

}  // namespace slip
