// Linear layers of one row that a branch joins on its way in (branch.h): a launch less than with a
// row that is there.
#include <algorithm>

#include "kernels/cuda/few_rows_plan.cuh"
#include "kernels/cuda/joined_row.cuh"
#include "kernels/cuda/tile_sums.cuh"

namespace slip {
namespace {

using namespace gemv;

constexpr int kRings[] = {8, 3};
constexpr int kMostHeld = 4;  // slabs of a warp
static_assert(kMostNormedSlabs == kMostHeld * kRoundWarps);

template <int kSlots, int kHeld, bool kTwo>
__global__ void __launch_bounds__(kThreads, 1)
    joined_row_kernel(const __grid_constant__ FewRows work,
                      const __grid_constant__ BranchParams branch) {
  let_next_begin();
  std::byte* const shared = launch_memory;
  using Stream = SlabStream<kSlots, true>;
  Stream stream(work, shared + int(threadIdx.x) / kWarp * Stream::kRingBytes);
  const RoundedRows rounded{shared + work.inputs_at, shared + work.units_at, 1};
  auto* partials = reinterpret_cast<float*>(shared + work.partials_at);
  {
    __shared__ float squares[kJoinNorms * kHeld * kRoundWarps];
    JoinedRow<kHeld, kTwo> row(branch, 0, squares, [&] { stream.fill(); });
    row.find_norm();
    const RowPart<kHeld> normed = row.output(0);
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (normed.slab(i) < work.slabs_per_tile)
        rounded.round<true>(normed.quads[i], 0, normed.slab(i));
    row.share_stores(normed);
  }
  __syncthreads();
  walk_tiles<TileSums<true, 1>>(work, stream, rounded, partials, [&](int first, const float* set) {
    finish_tiles(work, first, 0, 1, set);
  });
}

template <int kHeld, bool kTwo>
auto kernel_for(int slots) {
  return slots == kRings[0] ? joined_row_kernel<kRings[0], kHeld, kTwo>
                            : joined_row_kernel<kRings[1], kHeld, kTwo>;
}
// Fewer registers leave room for blocks of the kernel that follows.
template <bool kTwo>
auto kernel_for(int64_t slabs, int slots) {
  const int64_t held = (slabs + kRoundWarps - 1) / kRoundWarps;
  return held <= 1   ? kernel_for<1, kTwo>(slots)
         : held == 2 ? kernel_for<2, kTwo>(slots)
         : held == 3 ? kernel_for<3, kTwo>(slots)
                     : kernel_for<kMostHeld, kTwo>(slots);
}

}  // namespace

bool joins_into_int4(const LinearInput& input, const LinearJobs& slabs, const LinearJobs& floats) {
  if (input.rows != 1 || slabs.count == 0 || floats.count > 0 ||
      slab_count(input.in) > kMostNormedSlabs)
    return false;
  return std::all_of(slabs.list, slabs.list + slabs.count, [](const LinearJob& job) {
    return job.weight.format == WeightFormat::int4_group && job.weight.group == kSlabIn;
  });
}

void join_into_int4(const Launcher& launcher, const LinearInput& input, const BranchParams& branch,
                    const LinearJobs& slabs) {
  FewRows work = few_rows_work(input, slabs);
  const Plan plan = plan_few_rows(launcher, work, true, kRings);
  work.early_slots = early_slots_before_norm(plan.slots);
  const auto kernel = branch.beside ? kernel_for<true>(work.slabs_per_tile, plan.slots)
                                    : kernel_for<false>(work.slabs_per_tile, plan.slots);
  allow_shared(kernel, size_t(plan.bytes));
  launch(launcher, unsigned(plan.blocks), kThreads, size_t(plan.bytes), kernel, work, branch);
}

}  // namespace slip
