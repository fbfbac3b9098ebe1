// Linear layers of few rows with slabs of any format but int4 in groups of 128, which are
// gemv_int4.cu's.
#include <optional>

#include "kernels/cuda/few_rows_plan.cuh"
#include "kernels/cuda/finish_tiles.cuh"
#include "kernels/cuda/float_outputs.cuh"
#include "kernels/cuda/gemv.h"
#include "kernels/cuda/tile_sums.cuh"

namespace slip {
namespace {

using namespace gemv;

constexpr int kMostNormSlabs = 4;
static_assert(kMostNormedSlabs == kMostNormSlabs * kRoundWarps);

// Of a row that is to be normed, the most slabs that a warp has; or these.
constexpr int kPlainRows = 0, kRoundedRows = -1;

template <int kRowTiles, int kSlots, int kNormSlabs>
__global__ void __launch_bounds__(kThreads, 1)
    few_rows_kernel(const __grid_constant__ FewRows work) {
  let_next_begin();
  std::byte* const shared = launch_memory;
  using Stream = SlabStream<kSlots>;
  const int64_t first_row = int64_t(blockIdx.y) * work.rows_per_block;
  const int rows = int(min(int64_t(work.rows_per_block), work.input.rows - first_row));

  Stream stream(work, shared + int(threadIdx.x) / kWarp * Stream::kRingBytes);
  // A pair of floats per block: from the last one on, for the first ones may have a tile more.
  constexpr bool kNorms = kNormSlabs > 0;
  using Floats = FloatPair<Bf16Row, kRoundWarps, kNorms ? kNormSlabs : 1>;
  std::optional<Floats> floats;
  if (const int pair = int(gridDim.x) - 1 - int(blockIdx.x); kNorms && pair < work.floats.units)
    floats.emplace(work.floats, pair, int(work.input.in));

  const RoundedRows rounded{shared + work.inputs_at, shared + work.units_at, rows};
  auto* partials = reinterpret_cast<float*>(shared + work.partials_at);
  const auto asked = [&] { stream.fill(); };
  __shared__ FloatPartials float_partials;
  if constexpr (kNorms) {
    const NormedRow<kRoundWarps, kNormSlabs> row(work.input, 0, work.norm, partials, asked);
    round_normed<false>(row, 0, work.slabs_per_tile, rounded);
    if (floats) {
      typename Floats::Sums sums;
      floats->add(row.x, sums);
      floats->put(sums, float_partials);
    }
  } else if constexpr (kNormSlabs == kPlainRows) {
    round_plain<false>(SlabItems{work.input, first_row, rows, work.slabs_per_tile}, rounded, asked);
  } else {
    asked();
    wait_for_inputs();
    copy_rounded(work.input.rounded, rounded_bytes(rows, work.slabs_per_tile, RowForm::halves),
                 rounded.inputs);
  }
  __syncthreads();
  if (floats) {  // the last threads have the fewest slabs
    const int place = kThreads - 1 - int(threadIdx.x);
    if (place < kFloatOutputs) floats->finish(float_partials, place, 0, false);
  }

  walk_tiles<kRowTiles>(work, stream, rounded, partials, [&](int first, const float* set) {
    finish_tiles(work, first, first_row, rows, set);
  });
}

using FewRowsKernel = void (*)(FewRows);

// For one row that is to be normed.
template <int kSlots>
FewRowsKernel norming_kernel_for(int slabs) {
  return slabs <= kRoundWarps       ? few_rows_kernel<1, kSlots, 1>
         : slabs <= 2 * kRoundWarps ? few_rows_kernel<1, kSlots, 2>
                                    : few_rows_kernel<1, kSlots, kMostNormSlabs>;
}

template <int kSlots, int kHow>
FewRowsKernel kernel_of_rows(int rows) {
  return rows <= kMmaRows ? few_rows_kernel<1, kSlots, kHow> : few_rows_kernel<2, kSlots, kHow>;
}

template <int kSlots>
FewRowsKernel kernel_for(const FewRows& work, int rows) {
  return work.norm            ? norming_kernel_for<kSlots>(work.slabs_per_tile)
         : work.input.rounded ? kernel_of_rows<kSlots, kRoundedRows>(rows)
                              : kernel_of_rows<kSlots, kPlainRows>(rows);
}

// Whether `floats` went with them.
bool any_few_rows(const Launcher& launcher, const LinearInput& input, const LinearNorm& norm,
                  const LinearJobs& slabs, const LinearJobs& floats, bool add) {
  FewRows work = few_rows_work(input, slabs);
  work.norm = norm;
  work.add = add;
  const Plan plan = plan_few_rows(launcher, work, false);
  work.early_slots = norm ? early_slots_before_norm(work.slots) : work.slots - 1;
  const bool beside = norm && takes_floats_beside(floats, plan.blocks, add);
  if (beside) work.floats = floats;
  const FewRowsKernel kernel = work.slots == kByteRings[0]
                                   ? kernel_for<kByteRings[0]>(work, plan.rows)
                                   : kernel_for<kByteRings[1]>(work, plan.rows);
  allow_shared(kernel, size_t(plan.bytes));
  launch(launcher, dim3(unsigned(plan.blocks), unsigned((input.rows + plan.rows - 1) / plan.rows)),
         kThreads, size_t(plan.bytes), kernel, work);
  return beside;
}

int rows_at_once(const Launcher& launcher, const LinearInput& input, const LinearJobs& slabs,
                 bool int4) {
  FewRows work = few_rows_work(input, slabs);
  return plan_few_rows(launcher, work, int4).rows;
}

bool takes_integers(const DeviceWeight& weight) {
  return weight.format == DeviceFormat::int4_group && weight.group == kSlabIn;
}

}  // namespace

std::optional<RowForm> linear_takes_rounded(const Launcher& launcher, const LinearInput& input,
                                            const LinearJobs& slabs) {
  if (slabs.count == 0 || input.in % kSlabIn != 0) return {};
  if (input.rows == 0 || input.rows > kFewLinearRows) return {};
  const bool integers = takes_integers(slabs.list[0].weight);
  for (int i = 1; i < slabs.count; ++i)
    if (takes_integers(slabs.list[i].weight) != integers) return {};
  if (!integers && linear_parts(input.in) > 1) return {};  // every part rounds its own
  if (rows_at_once(launcher, input, slabs, integers) < input.rows) return {};
  return integers ? RowForm::integers : RowForm::halves;
}

bool linear_needs_rounded(const LinearInput& input, const LinearJobs& slabs) {
  if (linear_parts(input.in) == 1) return false;
  for (int i = 0; i < slabs.count; ++i)
    if (takes_integers(slabs.list[i].weight)) return true;
  return false;
}

int linear_rows_at_once(const Launcher& launcher, const LinearInput& input,
                        const LinearJobs& slabs) {
  auto rows = int(input.rows);
  for (int i = 0; i < slabs.count; ++i)
    rows =
        std::min(rows, rows_at_once(launcher, input, slabs, takes_integers(slabs.list[i].weight)));
  return rows;
}

size_t linear_rounded_bytes(int64_t rows, int64_t in) {
  const auto bytes = size_t(rounded_bytes(int(rows), int(slab_count(in))));
  return (bytes + 15) / 16 * 16;
}

void linear_few_rows(const Launcher& launcher, const LinearInput& input, const LinearNorm& norm,
                     const LinearJobs& slabs, const LinearJobs& floats, bool add) {
  // Those whose activations become integers go by themselves.
  LinearJobs int4, others;
  for (int i = 0; i < slabs.count; ++i) {
    const LinearJob& job = slabs.list[i];
    (takes_integers(job.weight) ? int4 : others)
        .add(job.weight, job.out, tile_count(job.weight.out));
  }
  if (linear_parts(input.in) > 1) {
    check(!norm, "linear: a wide row is not normed on its way in");
    if (int4.count > 0) linear_wide_rows(launcher, input, int4, true, add);
    if (others.count > 0) linear_wide_rows(launcher, input, others, false, add);
    return floats_few_rows(launcher, input, floats, add);
  }
  LinearJobs left = floats;
  if (int4.count > 0 && int4_few_rows(launcher, input, norm, int4, left, add)) left = {};
  if (others.count > 0 && any_few_rows(launcher, input, norm, others, left, add)) left = {};
  if (left.count == 0) return;
  LinearInput behind = input;
  if (norm) behind.x = norm.out;
  floats_few_rows(launcher, behind, left, add);
}

}  // namespace slip
