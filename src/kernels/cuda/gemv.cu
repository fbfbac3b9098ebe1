// Linear layers of few rows: bound by the bytes of the weights.
#include <optional>

#include "kernels/cuda/few_rows_plan.cuh"
#include "kernels/cuda/float_outputs.cuh"
#include "kernels/cuda/tile_sums.cuh"

namespace slip {
namespace {

using namespace gemv;

constexpr int kInt4NormRings[] = {8, 3};  // one row: whoever has no room for 8 seldom has for 5
constexpr int kMostNormSlabs = 4;
static_assert(kMostNormedSlabs == kMostNormSlabs * kRoundWarps);

// kNormSlabs: of a row that is to be normed, a warp has at most so many; or one of these.
constexpr int kPlainRows = 0, kRoundedRows = -1;
constexpr int kRoundedBesideFloats = -2;  // rounded, and as they are for weights of floats

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

template <int kRowTiles, int kSlots, bool kInt4, int kNormSlabs>
__global__ void __launch_bounds__(kThreads, 1)
    few_rows_kernel(const __grid_constant__ FewRows work) {
  let_next_begin();
  std::byte* const shared = launch_memory;
  using Stream = SlabStream<kSlots, kInt4>;
  const int64_t first_row = int64_t(blockIdx.y) * work.rows_per_block;
  const int rows = int(min(int64_t(work.rows_per_block), work.input.rows - first_row));

  Stream stream(work, shared + int(threadIdx.x) / kWarp * Stream::kRingBytes);
  // A pair of floats per block: from the last one on, for the first ones may have a tile more.
  constexpr bool kNorms = kNormSlabs > 0, kRowsBeside = kNormSlabs == kRoundedBesideFloats;
  using Floats = FloatPair<Bf16Row, kRoundWarps, kNorms ? kNormSlabs : kFloatSlabsBeside>;
  std::optional<Floats> floats;
  if (const int pair = int(gridDim.x) - 1 - int(blockIdx.x);
      (kNorms || kRowsBeside) && pair < work.floats.units)
    floats.emplace(work.floats, pair, int(work.input.in));

  const SlabItems items{work.input, first_row, rows, work.slabs_per_tile};
  const RoundedRows rounded{shared + work.inputs_at, shared + work.units_at, rows};
  auto* partials = reinterpret_cast<float*>(shared + work.partials_at);
  const auto asked = [&] { stream.fill(); };
  __shared__ FloatPartials float_partials[kRowsBeside ? kFewLinearRows : 1];
  if constexpr (kNorms) {
    const NormedRow<kRoundWarps, kNormSlabs> row(work.input, 0, work.norm, partials, asked);
    round_normed<kInt4>(row, 0, work.slabs_per_tile, rounded);
    if (floats) {
      typename Floats::Sums sums;
      floats->add(row.x, sums);
      floats->put(sums, float_partials[0]);
    }
  } else if constexpr (kNormSlabs == kPlainRows) {
    round_plain<kInt4>(items, rounded, asked);
  } else {
    wait_for_inputs();
    if (kRowsBeside && floats) put_rows(*floats, work.input, rows, float_partials);
    copy_rounded(work.input.rounded, rounded_bytes(rows, work.slabs_per_tile), rounded.inputs);
  }
  __syncthreads();
  if (floats) {  // the last threads have the fewest slabs
    const int place = kThreads - 1 - int(threadIdx.x), row = place / kFloatOutputs;
    if (row < rows) floats->finish(float_partials[row], place % kFloatOutputs, row, false);
  }

  walk_tiles<TileSums<kInt4, kRowTiles>>(
      work, stream, rounded, partials,
      [&](int first, const float* set) { finish_tiles(work, first, first_row, rows, set); });
}

using FewRowsKernel = void (*)(FewRows);

// Int4 for up to so many rows.
template <int kSlots, int kForm>
FewRowsKernel int4_kernel_for(int rows) {
  return rows <= kIntegerRows       ? few_rows_kernel<1, kSlots, true, kForm>
         : rows <= 2 * kIntegerRows ? few_rows_kernel<2, kSlots, true, kForm>
         : rows <= 3 * kIntegerRows ? few_rows_kernel<3, kSlots, true, kForm>
                                    : few_rows_kernel<4, kSlots, true, kForm>;
}

template <int kForm>
FewRowsKernel int4_kernel_for(const Plan& plan) {
  return plan.slots == kInt4Rings[0]   ? int4_kernel_for<kInt4Rings[0], kForm>(plan.rows)
         : plan.slots == kInt4Rings[1] ? int4_kernel_for<kInt4Rings[1], kForm>(plan.rows)
                                       : int4_kernel_for<kInt4Rings[2], kForm>(plan.rows);
}

template <int kSlots>
FewRowsKernel byte_kernel_for(int rows) {
  return rows <= kMmaRows ? few_rows_kernel<1, kSlots, false, kPlainRows>
                          : few_rows_kernel<2, kSlots, false, kPlainRows>;
}

FewRowsKernel kernel_for(bool int4, const Plan& plan, bool rounded, bool beside) {
  if (int4 && rounded && beside) return int4_kernel_for<kRoundedBesideFloats>(plan);
  if (int4 && rounded) return int4_kernel_for<kRoundedRows>(plan);
  if (int4) return int4_kernel_for<kPlainRows>(plan);
  return plan.slots == kByteRings[0] ? byte_kernel_for<kByteRings[0]>(plan.rows)
                                     : byte_kernel_for<kByteRings[1]>(plan.rows);
}

// For one row that is to be normed.
template <int kNormSlabs>
FewRowsKernel norming_kernel_for(bool int4, int slots) {
  if (int4)
    return slots == kInt4NormRings[0] ? few_rows_kernel<1, kInt4NormRings[0], true, kNormSlabs>
                                      : few_rows_kernel<1, kInt4NormRings[1], true, kNormSlabs>;
  return slots == kByteRings[0] ? few_rows_kernel<1, kByteRings[0], false, kNormSlabs>
                                : few_rows_kernel<1, kByteRings[1], false, kNormSlabs>;
}

FewRowsKernel norming_kernel_for(int slabs, bool int4, int slots) {
  return slabs <= kRoundWarps       ? norming_kernel_for<1>(int4, slots)
         : slabs <= 2 * kRoundWarps ? norming_kernel_for<2>(int4, slots)
                                    : norming_kernel_for<kMostNormSlabs>(int4, slots);
}

std::span<const int> rings_for(bool int4, bool norms) {
  if (!int4) return kByteRings;
  return norms ? std::span<const int>(kInt4NormRings) : kInt4Rings;
}

// `int4`: all slabs are, in groups of 128.
void launch_few_rows(const Launcher& launcher, const LinearInput& input, const LinearNorm& norm,
                     const LinearJobs& slabs, const LinearJobs& floats, bool int4, bool add) {
  FewRows work = few_rows_work(input, slabs);
  work.norm = norm;
  work.add = add;
  const Plan plan = plan_few_rows(launcher, work, int4, rings_for(int4, bool(norm)));
  const int rows = plan.rows, slots = plan.slots, blocks = plan.blocks;
  work.early_slots = norm ? early_slots_before_norm(slots) : slots - 1;
  // Floats of the usual kind go beside the others.
  const bool values_at_hand = norm || (input.rounded && input.quads && rows == input.rows &&
                                       work.slabs_per_tile <= kFloatSlabsBeside * kRoundWarps);
  const bool beside =
      floats.count > 0 && values_at_hand && floats.units <= blocks && all_bf16(floats) && !add;
  if (beside) work.floats = floats;
  const FewRowsKernel kernel = norm ? norming_kernel_for(work.slabs_per_tile, int4, slots)
                                    : kernel_for(int4, plan, input.rounded != nullptr, beside);
  allow_shared(kernel, size_t(plan.bytes));
  launch(launcher, dim3(unsigned(blocks), unsigned((input.rows + rows - 1) / rows)), kThreads,
         size_t(plan.bytes), kernel, work);
  if (beside) return;
  LinearInput behind = input;
  if (norm) behind.x = norm.out;
  floats_few_rows(launcher, behind, floats, add);
}

bool takes_integers(const DeviceWeight& weight) {
  return weight.format == WeightFormat::int4_group && weight.group == kSlabIn;
}

}  // namespace

bool linear_takes_rounded(const Launcher& launcher, const LinearInput& input,
                          const LinearJobs& slabs) {
  if (slabs.count == 0 || input.in % kSlabIn != 0) return false;
  if (input.rows == 0 || input.rows > kFewLinearRows) return false;
  for (int i = 0; i < slabs.count; ++i)
    if (!takes_integers(slabs.list[i].weight)) return false;
  return linear_rows_at_once(launcher, input, slabs) == input.rows;
}

bool linear_needs_rounded(const LinearInput& input, const LinearJobs& slabs) {
  if (linear_parts(input.in) == 1) return false;
  for (int i = 0; i < slabs.count; ++i)
    if (takes_integers(slabs.list[i].weight)) return true;
  return false;
}

int linear_rows_at_once(const Launcher& launcher, const LinearInput& input,
                        const LinearJobs& slabs) {
  FewRows work = few_rows_work(input, slabs);
  return plan_few_rows(launcher, work, true, kInt4Rings).rows;
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
  if (int4.count > 0) launch_few_rows(launcher, input, norm, int4, floats, true, add);
  if (others.count > 0)
    launch_few_rows(launcher, input, norm, others, int4.count > 0 ? LinearJobs{} : floats, false,
                    add);
  if (slabs.count == 0) floats_few_rows(launcher, input, floats, add);
}

}  // namespace slip
