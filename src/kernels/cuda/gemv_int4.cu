// Linear layers of few rows with weights of int4 in groups of 128, as published files have them.
#include <optional>

#include "kernels/cuda/few_rows_plan.cuh"
#include "kernels/cuda/finish_tiles.cuh"
#include "kernels/cuda/float_outputs.cuh"
#include "kernels/cuda/gemv.h"

namespace slip {
namespace {

using namespace gemv;

// How a kernel comes by its rows.
enum class Rows : uint8_t {
  plain,          // as they are: every block rounds them
  normed,         // one, which every block norms and rounds
  rounded,        // by whoever had their values at hand
  rounded_floats  // the same, and as they are for weights of floats
};

// Slabs that a warp has of a row beside which there are floats.
constexpr int kFloatSlabsBeside = 2;

// All rows of a step, some at once: they are waited for.
template <class Floats>
__device__ __forceinline__ void put_rows(const Floats& floats, const LinearInput& input, int rows,
                                         FloatPartials* partials) {
  constexpr int kAtOnce = 4;
  const int in = int(input.in);
#pragma unroll 1
  for (int first = 0; first < rows; first += kAtOnce) {
    float4 x[kAtOnce][kFloatSlabsBeside];
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r)
#pragma unroll
      for (int i = 0; i < kFloatSlabsBeside; ++i)
        x[r][i] = load_quad<true>(input.x + min(first + r, rows - 1) * in, floats.column(0, i), in);
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
      typename Floats::Sums sums;
      floats.add(x[r], sums);
      floats.put(sums, partials[min(first + r, rows - 1)]);
    }
  }
}

template <int kLength, int kMostRows, Rows kRows, int kNormSlabs>
__global__ void __launch_bounds__(kThreads, 1)
    int4_rows_kernel(const __grid_constant__ FewRows work) {
  let_next_begin();
  std::byte* const shared = launch_memory;
  constexpr bool kNorms = kRows == Rows::normed, kRowsBeside = kRows == Rows::rounded_floats;
  const int64_t first_row = int64_t(blockIdx.y) * work.rows_per_block;
  const int rows =
      kMostRows == 1 ? 1 : int(min(int64_t(work.rows_per_block), work.input.rows - first_row));

  Int4Runs<kLength> runs(work, shared);
  // A pair of floats per block: from the last one on, for the first ones may have a tile more.
  using Floats = FloatPair<Bf16Row, kRoundWarps, kNorms ? kNormSlabs : kFloatSlabsBeside>;
  std::optional<Floats> floats;
  if (const int pair = int(gridDim.x) - 1 - int(blockIdx.x);
      (kNorms || kRowsBeside) && pair < work.floats.units)
    floats.emplace(work.floats, pair, int(work.input.in));

  const RoundedRows rounded{shared + work.inputs_at, shared + work.units_at, rows};
  auto* partials = reinterpret_cast<float*>(shared + work.partials_at);
  __shared__ FloatPartials float_partials[kRowsBeside ? kFewLinearRows : 1];
  const auto asked = [&] { runs.fill(); };
  if constexpr (kNorms) {
    const NormedRow<kRoundWarps, kNormSlabs> row(work.input, 0, work.norm, partials, asked);
    round_normed<true>(row, 0, work.slabs_per_tile, rounded);
    if (floats) {
      typename Floats::Sums sums;
      floats->add(row.x, sums);
      floats->put(sums, float_partials[0]);
    }
  } else if constexpr (kRows == Rows::plain) {
    round_plain<true>(SlabItems{work.input, first_row, rows, work.slabs_per_tile}, rounded, asked);
  } else {
    asked();
    wait_for_inputs();
    if (kRowsBeside && floats) put_rows(*floats, work.input, rows, float_partials);
    copy_rounded(work.input.rounded, rounded_bytes(rows, work.slabs_per_tile), rounded.inputs);
  }
  clear_units_behind(rounded, work.slabs_per_tile);
  __syncthreads();
  if (floats) {  // the last threads have the fewest slabs
    const int place = kThreads - 1 - int(threadIdx.x), row = place / kFloatOutputs;
    if (row < rows) floats->finish(float_partials[row], place % kFloatOutputs, row, false);
  }

  walk_runs<kMostRows>(work, runs, rounded, partials, [&](int first, const float* set) {
    finish_tiles(work, first, first_row, rows, set);
  });
}

using Int4Kernel = void (*)(FewRows);

// kNormSlabs: of a row that is to be normed, a warp has at most so many.
template <Rows kRows, int kMostRows, int kNormSlabs>
Int4Kernel kernel_for(int length) {
  return length == kShortPiece ? int4_rows_kernel<kShortPiece, kMostRows, kRows, kNormSlabs>
                               : int4_rows_kernel<kLongPiece, kMostRows, kRows, kNormSlabs>;
}

template <Rows kRows, int kMostRows>
Int4Kernel many_rows_kernel_for(int length) {
  return length == kSingle ? int4_rows_kernel<kSingle, kMostRows, kRows, 0>
                           : int4_rows_kernel<kShortPiece, kMostRows, kRows, 0>;
}

template <Rows kRows>
Int4Kernel kernel_for(int length, int rows) {
  switch (int4_most_rows(rows)) {
    case 1: return kernel_for<kRows, 1, 0>(length);
    case kIntegerRows: return kernel_for<kRows, kIntegerRows, 0>(length);
    case 8: return kernel_for<kRows, 8, 0>(length);
    case 12: return many_rows_kernel_for<kRows, 12>(length);
    default: return many_rows_kernel_for<kRows, 16>(length);
  }
}

Int4Kernel norming_kernel_for(int length, int slabs) {
  return slabs <= kRoundWarps       ? kernel_for<Rows::normed, 1, 1>(length)
         : slabs <= 2 * kRoundWarps ? kernel_for<Rows::normed, 1, 2>(length)
                                    : kernel_for<Rows::normed, 1, 4>(length);
}

}  // namespace

bool gemv::int4_few_rows(const Launcher& launcher, const LinearInput& input, const LinearNorm& norm,
                         const LinearJobs& slabs, const LinearJobs& floats, bool add) {
  FewRows work = few_rows_work(input, slabs);
  work.norm = norm;
  work.add = add;
  const Plan plan = plan_few_rows(launcher, work, true);
  const bool values_at_hand = norm || (input.rounded && input.quads && plan.rows == input.rows &&
                                       work.slabs_per_tile <= kFloatSlabsBeside * kRoundWarps);
  const bool beside = values_at_hand && takes_floats_beside(floats, plan.blocks, add);
  if (beside) work.floats = floats;
  const int length = piece_length(work.slabs_per_tile, plan.rows);
  const Int4Kernel kernel = norm            ? norming_kernel_for(length, work.slabs_per_tile)
                            : beside        ? kernel_for<Rows::rounded_floats>(length, plan.rows)
                            : input.rounded ? kernel_for<Rows::rounded>(length, plan.rows)
                                            : kernel_for<Rows::plain>(length, plan.rows);
  work.early_slots = norm ? early_slots_before_norm(work.slots) : work.slots;
  allow_shared(kernel, size_t(plan.bytes));
  launch(launcher, dim3(unsigned(plan.blocks), unsigned((input.rows + plan.rows - 1) / plan.rows)),
         kThreads, size_t(plan.bytes), kernel, work);
  return beside;
}

}  // namespace slip
