// Linear layers of one row that a branch joins on its way in (branch.h): a launch less than with a
// row that is there.
#include <algorithm>

#include "kernels/cuda/few_rows_plan.cuh"
#include "kernels/cuda/finish_tiles.cuh"
#include "kernels/cuda/joined_row.cuh"

namespace slip {
namespace {

using namespace gemv;

constexpr int kMostHeld = 4;  // slabs of a warp
static_assert(kMostNormedSlabs == kMostHeld * kRoundWarps);

template <int kLength, int kHeld, bool kTwo>
__global__ void __launch_bounds__(kThreads, 1)
    joined_row_kernel(const __grid_constant__ FewRows work,
                      const __grid_constant__ BranchParams branch) {
  let_next_begin();
  std::byte* const shared = launch_memory;
  Int4Runs<kLength> runs(work, shared);
  const RoundedRows rounded{shared + work.inputs_at, shared + work.units_at, 1};
  auto* partials = reinterpret_cast<float*>(shared + work.partials_at);
  {
    __shared__ float squares[kJoinNorms * kHeld * kRoundWarps];
    JoinedRow<kHeld, kTwo> row(branch, 0, squares, [&] { runs.fill(); });
    row.find_norm();
    const RowPart<kHeld> normed = row.output(0);
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (normed.slab(i) < work.slabs_per_tile)
        rounded.round<true>(normed.quads[i], 0, normed.slab(i));
    row.share_stores(normed);
  }
  clear_units_behind(rounded, work.slabs_per_tile);
  __syncthreads();
  walk_runs<1>(work, runs, rounded, partials,
               [&](int first, const float* set) { finish_tiles(work, first, 0, 1, set); });
}

using JoinedKernel = void (*)(FewRows, BranchParams);

template <int kHeld, bool kTwo>
JoinedKernel kernel_for(int length) {
  return length == kShortPiece ? joined_row_kernel<kShortPiece, kHeld, kTwo>
                               : joined_row_kernel<kLongPiece, kHeld, kTwo>;
}
template <bool kTwo>
JoinedKernel kernel_for(int slabs) {
  const int length = piece_length(slabs, 1);
  const int held = (slabs + kRoundWarps - 1) / kRoundWarps;
  return held <= 1   ? kernel_for<1, kTwo>(length)
         : held == 2 ? kernel_for<2, kTwo>(length)
         : held == 3 ? kernel_for<3, kTwo>(length)
                     : kernel_for<kMostHeld, kTwo>(length);
}

}  // namespace

bool joins_into_int4(const LinearInput& input, const LinearJobs& slabs, const LinearJobs& floats) {
  if (input.rows != 1 || slabs.count == 0 || floats.count > 0 ||
      slab_count(input.in) > kMostNormedSlabs)
    return false;
  return std::all_of(slabs.list, slabs.list + slabs.count, [](const LinearJob& job) {
    return job.weight.format == DeviceFormat::int4_group && job.weight.group == kSlabIn;
  });
}

void join_into_int4(const Launcher& launcher, const LinearInput& input, const BranchParams& branch,
                    const LinearJobs& slabs) {
  FewRows work = few_rows_work(input, slabs);
  const Plan plan = plan_few_rows(launcher, work, true);
  const auto kernel = branch.beside ? kernel_for<true>(work.slabs_per_tile)
                                    : kernel_for<false>(work.slabs_per_tile);
  work.early_slots = early_slots_before_norm(work.slots);
  allow_shared(kernel, size_t(plan.bytes));
  launch(launcher, unsigned(plan.blocks), kThreads, size_t(plan.bytes), kernel, work, branch);
}

}  // namespace slip
