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

constexpr int kDeclaredBytes = 2048;  // of shared memory, in the kernel itself
constexpr int kMostNormSlabs = 4;
constexpr int kMostFloatNormSlabs = 4;
static_assert(kMostNormedSlabs == kMostNormSlabs * kRoundWarps);

// kNormSlabs: of a row that is to be normed, a warp has at most so many; or one of these.
constexpr int kPlainRows = 0, kRoundedRows = -1;

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
  using Floats = FloatPair<Bf16Piece, true>;
  static_assert(kThreads == kMostFloatGroups * kFloatThreads);
  // From the last block on: the first ones may have a tile more.
  int float_unit = int(gridDim.x) * (float_group() + 1) - 1 - int(blockIdx.x);
  const int float_units = work.floats.units * rows;
  std::optional<Floats> floats;
  if (float_unit < float_units) floats.emplace(work.input, work.floats, float_unit);

  const SlabItems items{work.input, first_row, rows, work.slabs_per_tile};
  const RoundedRows rounded{shared + work.inputs_at, shared + work.units_at, rows};
  auto* partials = reinterpret_cast<float*>(shared + work.partials_at);
  const auto asked = [&] { stream.fill(); };
  float inverse = 1;
  if constexpr (kNormSlabs > 0)
    inverse = round_normed<kInt4, kNormSlabs>(work.input, work.norm, rounded, partials, asked);
  else if constexpr (kNormSlabs == kRoundedRows)
    copy_rounded(work.input.rounded, rounded_bytes(rows, work.slabs_per_tile), rounded);
  else
    round_plain<kInt4>(items, rounded, asked);
  __syncthreads();
#pragma unroll 1
  while (float_unit < float_units) {
    floats->finish(kNormSlabs > 0 ? work.norm : LinearNorm{}, inverse, work.add);
    float_unit += kMostFloatGroups * int(gridDim.x);
    if (float_unit < float_units) floats.emplace(work.input, work.floats, float_unit);
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

template <class Piece, bool kQuads>
__global__ void __launch_bounds__(kFloatThreads)
    floats_kernel(const __grid_constant__ LinearInput input,
                  const __grid_constant__ LinearJobs jobs, bool add) {
  let_next_begin();
  FloatPair<Piece, kQuads> pair(input, jobs, int(blockIdx.x));
  wait_for_inputs();
  pair.finish({}, 1, add);
}

// A single row, normed.
template <int kNormSlabs>
__global__ void __launch_bounds__(kFloatThreads)
    normed_floats_kernel(const __grid_constant__ LinearInput input,
                         const __grid_constant__ LinearNorm norm,
                         const __grid_constant__ LinearJobs jobs) {
  let_next_begin();
  __shared__ float squares[kNormSlabs * kFloatWarps];
  FloatPair<Bf16Piece, true> pair(input, jobs, int(blockIdx.x));
  const NormedRow<kFloatWarps, kNormSlabs> row(input, norm, squares, [] {});
  pair.finish(norm, row.inverse, false);
}

using FewRowsKernel = void (*)(FewRows);

// Int4 for up to so many rows.
template <int kSlots, int kForm>
FewRowsKernel int4_kernel_for(int rows) {
  return rows <= 4   ? few_rows_kernel<1, kSlots, true, kForm>
         : rows <= 8 ? few_rows_kernel<2, kSlots, true, kForm>
                     : few_rows_kernel<4, kSlots, true, kForm>;
}

FewRowsKernel kernel_for(bool int4, bool short_rings, bool rounded, int rows) {
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

void launch_normed_floats(const Launcher& launcher, const LinearInput& input,
                          const LinearNorm& norm, const LinearJobs& floats) {
  const int64_t slabs = slab_count(input.in);
  const auto kernel = slabs <= 2 * kFloatWarps   ? normed_floats_kernel<2>
                      : slabs <= 3 * kFloatWarps ? normed_floats_kernel<3>
                                                 : normed_floats_kernel<kMostFloatNormSlabs>;
  launch(launcher, unsigned(floats.units), kFloatThreads, 0, kernel, input, norm, floats);
}

template <class Piece>
void launch_floats_of(const Launcher& launcher, const LinearInput& input, const LinearJobs& floats,
                      bool add) {
  const auto kernel = input.quads ? floats_kernel<Piece, true> : floats_kernel<Piece, false>;
  launch(launcher, unsigned(floats.units * input.rows), kFloatThreads, 0, kernel, input, floats,
         add);
}

LinearJobs of_format(const LinearJobs& jobs, WeightFormat format) {
  LinearJobs some;
  for (int i = 0; i < jobs.count; ++i) {
    const LinearJob& job = jobs.list[i];
    if (job.weight.format == format)
      some.add(job.weight, job.out, job.end - (i == 0 ? 0 : jobs.list[i - 1].end));
  }
  return some;
}

void launch_floats(const Launcher& launcher, const LinearInput& input, const LinearJobs& floats,
                   bool add) {
  if (const LinearJobs some = of_format(floats, WeightFormat::bf16); some.count > 0)
    launch_floats_of<Bf16Piece>(launcher, input, some, add);
  if (const LinearJobs some = of_format(floats, WeightFormat::f16); some.count > 0)
    launch_floats_of<F16Piece>(launcher, input, some, add);
  if (const LinearJobs some = of_format(floats, WeightFormat::f32); some.count > 0)
    launch_floats_of<F32Piece>(launcher, input, some, add);
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
  // Floats of the usual kind go beside the others.
  const bool beside = input.quads && rows == input.rows &&
                      of_format(floats, WeightFormat::bf16).count == floats.count;
  if (beside) work.floats = floats;
  const int blocks = std::min(std::max(slabs.units, work.floats.units), launcher.multiprocessors);
  work.teams = kTeams * blocks;
  const FewRowsKernel kernel = norm ? norming_kernel_for(work.slabs_per_tile, int4, short_rings)
                                    : kernel_for(int4, short_rings, input.rounded != nullptr, rows);
  allow_shared(kernel, size_t(bytes));
  launch(launcher, dim3(unsigned(blocks), unsigned((input.rows + rows - 1) / rows)), kThreads,
         size_t(bytes), kernel, work);
  if (beside) return;
  LinearInput behind = input;
  if (norm) behind.x = norm.out;
  launch_floats(launcher, behind, floats, add);
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

bool norms_floats(const LinearInput& input, const LinearJobs& floats) {
  return floats.count > 0 && input.quads &&
         input.in <= kMostFloatNormSlabs * kFloatWarps * kNormSlab &&
         of_format(floats, WeightFormat::bf16).count == floats.count;
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
  if (slabs.count > 0) return;
  if (norm)
    launch_normed_floats(launcher, input, norm, floats);
  else
    launch_floats(launcher, input, floats, add);
}

}  // namespace slip
