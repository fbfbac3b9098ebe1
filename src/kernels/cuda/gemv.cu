// Linear layers of few rows: bound by the bytes of the weights.
#include <algorithm>
#include <optional>

#include "kernels/cuda/float_outputs.cuh"
#include "kernels/cuda/int4_products.cuh"
#include "kernels/cuda/rounded_rows.cuh"
#include "kernels/cuda/slab_stream.cuh"

namespace slip {
namespace {

using namespace gemv;

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
#pragma unroll 1
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
#pragma unroll
  for (int w = 0; w < kWarps; ++w)
    if (w < warps) sum += part[w * work.rows_per_block * kPartialStride];
  sum *= scale;
  *out = work.add ? before + sum : sum;
}

constexpr int kDeclaredBytes = 3072;  // of shared memory, in the kernel itself
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
  extern __shared__ __align__(16) std::byte shared[];
  using Stream = SlabStream<kSlots, kInt4>;
  const int lane = int(threadIdx.x) % kWarp;
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
    copy_rounded(work.input.rounded, rounded_bytes(rows, work.slabs_per_tile), rounded);
  }
  __syncthreads();
  if (floats) {  // the last threads have the fewest slabs
    const int place = kThreads - 1 - int(threadIdx.x), row = place / kFloatOutputs;
    if (row < rows) floats->finish(float_partials[row], place % kFloatOutputs, row, false);
  }

  // Two sets of partial sums take turns: the next may be finished by some warps while others still
  // read the last.
  using Tile = std::conditional_t<kInt4, TileOfInt4<kRowTiles>, TileOfAny<kRowTiles>>;
  const typename Tile::Lanes lanes(rows);
  const int tile_partials = kWarps * work.rows_per_block * kPartialStride;
  int job = 0, turn = 0;
  for (int first = int(blockIdx.x); first < work.slabs.units;
       first += work.tiles_at_once * work.teams, turn ^= 1) {
    float* set = partials + turn * kTeams * work.tiles_at_once * tile_partials;
    float* own = set + team() * tile_partials + lane / 4 +
                 warp_of_team() * work.rows_per_block * kPartialStride;
    int tile = first + team() * int(gridDim.x);
    for (int i = 0; i < work.tiles_at_once && tile < work.slabs.units; ++i) {
#pragma unroll 1
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

using FewRowsKernel = void (*)(FewRows);

// Int4 for up to so many rows.
template <int kSlots, int kForm>
FewRowsKernel int4_kernel_for(int rows) {
  return rows <= 4   ? few_rows_kernel<1, kSlots, true, kForm>
         : rows <= 8 ? few_rows_kernel<2, kSlots, true, kForm>
                     : few_rows_kernel<4, kSlots, true, kForm>;
}

FewRowsKernel kernel_for(bool int4, bool short_rings, bool rounded, bool beside, int rows) {
  if (int4 && rounded && beside)
    return short_rings ? int4_kernel_for<3, kRoundedBesideFloats>(rows)
                       : int4_kernel_for<8, kRoundedBesideFloats>(rows);
  if (int4 && rounded)
    return short_rings ? int4_kernel_for<3, kRoundedRows>(rows)
                       : int4_kernel_for<8, kRoundedRows>(rows);
  if (int4)
    return short_rings ? int4_kernel_for<3, kPlainRows>(rows)
                       : int4_kernel_for<8, kPlainRows>(rows);
  if (short_rings)
    return rows <= 8 ? few_rows_kernel<1, 2, false, kPlainRows>
                     : few_rows_kernel<2, 2, false, kPlainRows>;
  return rows <= 8 ? few_rows_kernel<1, 4, false, kPlainRows>
                   : few_rows_kernel<2, 4, false, kPlainRows>;
}

// For one row that is to be normed.
template <int kNormSlabs>
FewRowsKernel norming_kernel_for(bool int4, bool short_rings) {
  if (short_rings)
    return int4 ? few_rows_kernel<1, 3, true, kNormSlabs>
                : few_rows_kernel<1, 2, false, kNormSlabs>;
  return int4 ? few_rows_kernel<1, 8, true, kNormSlabs> : few_rows_kernel<1, 4, false, kNormSlabs>;
}

FewRowsKernel norming_kernel_for(int slabs, bool int4, bool short_rings) {
  return slabs <= kRoundWarps       ? norming_kernel_for<1>(int4, short_rings)
         : slabs <= 2 * kRoundWarps ? norming_kernel_for<2>(int4, short_rings)
                                    : norming_kernel_for<kMostNormSlabs>(int4, short_rings);
}

// How a launch shares the memory of a multiprocessor. One block each, and never two: the rings are
// large enough to see to that. Blocks of half the size would let the next kernel begin earlier, but
// not on all multiprocessors alike.
struct Plan {
  int rows;  // of a block
  int slots;
  int bytes;
  bool short_rings;
};

Plan plan_few_rows(const Launcher& launcher, FewRows& work, int rows, bool int4) {
  const int slot_bytes = int4 ? kInt4Slot : kByteSlot;
  const int teams = kTeams * launcher.multiprocessors;
  const int tiles_per_team = (work.slabs.units + teams - 1) / teams;
  const auto shared_bytes = [&](int slots) {
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
  const int room = launcher.shared_bytes - kDeclaredBytes;
  int slots = int4 ? 8 : 4;
  const bool short_rings = shared_bytes(slots) > room;
  if (short_rings) slots = int4 ? 3 : 2;
  while (rows > 1 && shared_bytes(slots) > room) rows = (rows + 1) / 2;
  const int bytes = shared_bytes(slots);
  check(bytes <= room, "linear: ", work.input.in, " inputs need ", bytes,
        " bytes of shared memory, a block has ", room);
  return {rows, slots, bytes, short_rings};
}

FewRows few_rows_work(const LinearInput& input, const LinearJobs& slabs) {
  FewRows work{};
  work.input = input;
  work.slabs = slabs;
  work.slabs_per_tile = int32_t(slab_count(input.in));
  return work;
}

// `int4`: all slabs are, in groups of 128.
void launch_few_rows(const Launcher& launcher, const LinearInput& input, const LinearNorm& norm,
                     const LinearJobs& slabs, const LinearJobs& floats, bool int4, bool add) {
  FewRows work = few_rows_work(input, slabs);
  work.norm = norm;
  work.add = add;
  const auto [rows, slots, bytes, short_rings] =
      plan_few_rows(launcher, work, int(input.rows), int4);
  // What is asked for behind a ring arrives behind it. A row that is normed follows a kernel that
  // ends late, so that its ring is still on its way then, and is waited for longest.
  work.early_slots = norm ? (3 * slots + 4) / 8 : slots - 1;
  const int blocks = std::min(slabs.units, launcher.multiprocessors);
  // Floats of the usual kind go beside the others.
  const bool values_at_hand = norm || (input.rounded && input.quads && rows == input.rows &&
                                       work.slabs_per_tile <= kFloatSlabsBeside * kRoundWarps);
  const bool beside =
      floats.count > 0 && values_at_hand && floats.units <= blocks && all_bf16(floats) && !add;
  if (beside) work.floats = floats;
  work.teams = kTeams * blocks;
  const FewRowsKernel kernel =
      norm ? norming_kernel_for(work.slabs_per_tile, int4, short_rings)
           : kernel_for(int4, short_rings, input.rounded != nullptr, beside, rows);
  allow_shared(kernel, size_t(bytes));
  launch(launcher, dim3(unsigned(blocks), unsigned((input.rows + rows - 1) / rows)), kThreads,
         size_t(bytes), kernel, work);
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
  FewRows work = few_rows_work(input, slabs);
  return plan_few_rows(launcher, work, int(input.rows), true).rows == input.rows;
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
  if (int4.count > 0) launch_few_rows(launcher, input, norm, int4, floats, true, add);
  if (others.count > 0)
    launch_few_rows(launcher, input, norm, others, int4.count > 0 ? LinearJobs{} : floats, false,
                    add);
  if (slabs.count == 0) floats_few_rows(launcher, input, floats, add);
}

}  // namespace slip
