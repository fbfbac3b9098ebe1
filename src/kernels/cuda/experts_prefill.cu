// Mixture of experts, many rows: pairs (row, rank) are sorted by expert, and every tile of up to 64
// pairs of one expert is a product of matrices.
#include <algorithm>

#include "kernels/cuda/experts.h"
#include "kernels/cuda/row_tiles.cuh"

namespace slip {
namespace {

constexpr int kPrepareThreads = 1024;
constexpr int kCombineThreads = 256;

// Sorts pairs by expert: counts, places of each expert's first pair and tile, then the pairs. Their
// order within an expert is a matter of chance and of no consequence.
__device__ void sort_pairs(const ExpertsStep& step, const ManyRows& many) {
  __shared__ int32_t counts[kMostExperts];  // then the next slot of each
  const int thread = int(threadIdx.x), lane = thread % kWarp;
  const int pairs = step.rows * step.top_k;
  for (int e = thread; e < step.experts; e += kPrepareThreads) counts[e] = 0;
  __syncthreads();
  for (int pair = thread; pair < pairs; pair += kPrepareThreads)
    atomicAdd(&counts[step.ids[pair]], 1);
  __syncthreads();
  if (thread < kWarp) {
    int slots = 0, tiles = 0;
    for (int begin = 0; begin < step.experts; begin += kWarp) {
      const int expert = begin + lane;
      const int count = expert < step.experts ? counts[expert] : 0;
      const int own_tiles = (count + kTileRows - 1) / kTileRows;
      int slots_up_to = count, tiles_up_to = own_tiles;  // up to and with this lane's
      for (int distance = 1; distance < kWarp; distance *= 2) {
        const int more_slots = __shfl_up_sync(~0u, slots_up_to, distance);
        const int more_tiles = __shfl_up_sync(~0u, tiles_up_to, distance);
        if (lane >= distance) {
          slots_up_to += more_slots;
          tiles_up_to += more_tiles;
        }
      }
      const int first = slots + slots_up_to - count;
      for (int i = 0; i < own_tiles; ++i)
        many.tiles[tiles + tiles_up_to - own_tiles + i] = {expert, first + i * kTileRows,
                                                           min(kTileRows, count - i * kTileRows)};
      if (expert < step.experts) counts[expert] = first;
      slots += __shfl_sync(~0u, slots_up_to, kWarp - 1);
      tiles += __shfl_sync(~0u, tiles_up_to, kWarp - 1);
    }
    if (lane == 0) *many.tile_count = tiles;
  }
  __syncthreads();
  for (int pair = thread; pair < pairs; pair += kPrepareThreads) {
    const int slot = atomicAdd(&counts[step.ids[pair]], 1);
    many.slot_rows[slot] = pair / step.top_k;
    many.slots[pair] = slot;
  }
}

// Block 0 sorts; in the others every warp rounds a slab of a row.
__global__ void __launch_bounds__(kPrepareThreads) prepare_kernel(ExpertsStep step, ManyRows many) {
  wait_for_inputs();
  let_next_begin();
  if (blockIdx.x == 0) return sort_pairs(step, many);
  const int slabs = slabs_of(step.hidden);
  const int64_t item = (int64_t(blockIdx.x) - 1) * (kPrepareThreads / kWarp) + threadIdx.x / kWarp;
  if (item >= int64_t(step.rows) * slabs) return;
  const float* row = step.x + item / slabs * step.hidden;
  const float4 x = lane_inputs(row, int(item % slabs), step.hidden, in_quads(step.x, step.hidden));
  const float unit = round_slab(x, 0, 1, many.x.values + item * kSlabIn * 2);
  if (threadIdx.x % kWarp == 0) many.x.units[item] = unit;
}

// Block (s, t): slab s of the hidden activations of row tile t.
__global__ void __launch_bounds__(kTileThreads)
    gate_up_many_kernel(ExpertsStep step, ManyRows many) {
  std::byte* const memory = launch_memory;
  wait_for_inputs();
  let_next_begin();
  const RowTile rows = find_row_tile(step, many);
  const bool is_shared = rows.expert < 0;
  const int width = is_shared ? step.shared_width : step.width;
  if (rows.count == 0 || int(blockIdx.x) >= slabs_of(width)) return;
  const int warp = int(threadIdx.x) / kWarp;
  const int tile = int(blockIdx.x) * kTileWarps + warp;
  const ExpertWeight gate = is_shared ? step.shared.gate : weight_of(step, kGate, rows.expert);
  const ExpertWeight up = is_shared ? step.shared.up : weight_of(step, kUp, rows.expert);
  const TileProduct product{
      .weights = {weight_tile(gate, tile, step.hidden), weight_tile(up, tile, step.hidden)},
      .exists = {tile * kTileOut < width, tile * kTileOut < width},
      .inputs = many.x,
      .slabs = slabs_of(step.hidden),
      .rows = rows.count,
      .stages = many.stages};
  auto* sources = reinterpret_cast<int32_t*>(memory + many.stages * kStageBytes);
  if (int(threadIdx.x) < rows.count)
    sources[threadIdx.x] =
        is_shared ? rows.first + int(threadIdx.x) : many.slot_rows[rows.first + int(threadIdx.x)];
  __syncthreads();

  const Rounded hidden = is_shared ? many.shared_hidden : many.hidden;
  product.run(memory, sources, [&](const auto& sums) {
    // Through shared memory: a row's slab is rounded by one warp.
    constexpr int kStride = kSlabIn + 4;
    auto* results = reinterpret_cast<float*>(memory);  // [64 rows][kStride]
    __syncthreads();
    sums.for_each([&](int row, int output, float gate_sum, float up_sum) {
      const int column = warp * kTileOut + output;
      const bool exists = int(blockIdx.x) * kSlabIn + column < width;
      results[row * kStride + column] = exists ? activated(gate_sum, step.gelu) * up_sum : 0.0f;
    });
    __syncthreads();
    for (int row = warp; row < rows.count; row += kTileWarps) {
      const int lane = int(threadIdx.x) % kWarp;
      const float4 x = *reinterpret_cast<const float4*>(results + row * kStride + lane * 4);
      const int64_t place = int64_t(rows.first + row) * slabs_of(width) + blockIdx.x;
      const float unit = round_slab(x, 0, 1, hidden.values + place * kSlabIn * 2);
      if (lane == 0) hidden.units[place] = unit;
    }
  });
}

// Block (s, t): 256 outputs of row tile t, two tiles of 16 for each warp.
__global__ void __launch_bounds__(kTileThreads) down_many_kernel(ExpertsStep step, ManyRows many) {
  std::byte* const memory = launch_memory;
  wait_for_inputs();
  let_next_begin();
  const RowTile rows = find_row_tile(step, many);
  if (rows.count == 0) return;
  const bool is_shared = rows.expert < 0;
  const int width = is_shared ? step.shared_width : step.width;
  const int tile = int(blockIdx.x) * 2 * kTileWarps + int(threadIdx.x) / kWarp;
  const int second = tile + kTileWarps;
  const ExpertWeight down = is_shared ? step.shared.down : weight_of(step, kDown, rows.expert);
  const TileProduct product{
      .weights = {weight_tile(down, tile, width), weight_tile(down, second, width)},
      .exists = {tile * kTileOut < step.hidden, second * kTileOut < step.hidden},
      .inputs = is_shared ? many.shared_hidden : many.hidden,
      .slabs = slabs_of(width),
      .rows = rows.count,
      .stages = many.stages};
  auto* sources = reinterpret_cast<int32_t*>(memory + many.stages * kStageBytes);
  if (int(threadIdx.x) < rows.count) sources[threadIdx.x] = rows.first + int(threadIdx.x);
  __syncthreads();

  float* outputs = many.outputs;
  if (is_shared) outputs += int64_t(step.rows) * step.top_k * step.hidden;
  product.run(memory, sources, [&](const auto& sums) {
    sums.for_each([&](int row, int output, float first_sum, float second_sum) {
      if (row >= rows.count) return;
      float* out = outputs + int64_t(rows.first + row) * step.hidden;
      if (tile * kTileOut + output < step.hidden) out[tile * kTileOut + output] = first_sum;
      if (second * kTileOut + output < step.hidden) out[second * kTileOut + output] = second_sum;
    });
  });
}

// One block, one row: experts in the order of their ranks, the shared one last.
template <bool kAligned>
__global__ void __launch_bounds__(kCombineThreads) combine_kernel(ExpertsStep step, ManyRows many) {
  __shared__ float weights[kMostTopK + 1];
  __shared__ int32_t slots[kMostTopK + 1];
  wait_for_inputs();
  let_next_begin();
  const int64_t row = blockIdx.x;
  const int thread = int(threadIdx.x), terms = step.top_k + (step.shared_width > 0 ? 1 : 0);
  if (thread < step.top_k) {
    weights[thread] = step.weights[row * step.top_k + thread];
    slots[thread] = many.slots[row * step.top_k + thread];
  } else if (thread < terms) {
    weights[thread] = sigmoid(step.shared_gate[row]);
    slots[thread] = step.rows * step.top_k + int(row);
  }
  __syncthreads();
  for (int i = thread * kQuad; i < step.hidden; i += kCombineThreads * kQuad) {
    float* out = step.out + row * step.hidden;
    float4 sum = step.add ? load_quad<kAligned>(out, i, step.hidden) : make_float4(0, 0, 0, 0);
    for (int term = 0; term < terms; ++term) {
      const float4 y =
          load_quad<kAligned>(many.outputs + int64_t(slots[term]) * step.hidden, i, step.hidden);
      sum.x = fmaf(weights[term], y.x, sum.x);
      sum.y = fmaf(weights[term], y.y, sum.y);
      sum.z = fmaf(weights[term], y.z, sum.z);
      sum.w = fmaf(weights[term], y.w, sum.w);
    }
    store_quad<kAligned>(out, i, step.hidden, sum);
  }
}

int64_t most_row_tiles(int64_t pairs, int64_t experts) {
  return pairs / kTileRows + std::min(pairs, experts);
}

// Takes parts of one block of memory, or, without any, only counts.
class ManyRowsScratch {
 public:
  explicit ManyRowsScratch(std::byte* memory) : memory_(memory) {}
  template <class T>
  T* take(int64_t count) {
    std::byte* part = memory_ ? memory_ + used_ : nullptr;
    used_ += (size_t(count) * sizeof(T) + 255) / 256 * 256;
    return reinterpret_cast<T*>(part);
  }
  Rounded take_rounded(int64_t rows, int64_t dim) {
    const int64_t slabs = rows * slab_count(dim);
    return {take<std::byte>(slabs * kSlabIn * 2), take<float>(slabs)};
  }
  size_t used() const { return used_; }

 private:
  std::byte* memory_;
  size_t used_ = 0;
};

ManyRows many_rows(ManyRowsScratch& parts, int64_t rows, int64_t hidden, int64_t top_k,
                   int64_t experts, int64_t width, int64_t shared_width) {
  const int64_t pairs = rows * top_k;
  ManyRows many{};
  many.slot_rows = parts.take<int32_t>(pairs);
  many.slots = parts.take<int32_t>(pairs);
  many.tiles = parts.take<RowTile>(most_row_tiles(pairs, experts));
  many.tile_count = parts.take<int32_t>(1);
  many.x = parts.take_rounded(rows, hidden);
  many.hidden = parts.take_rounded(pairs, width);
  many.shared_hidden = parts.take_rounded(rows, shared_width);
  many.outputs = parts.take<float>((pairs + (shared_width > 0 ? rows : 0)) * hidden);
  return many;
}

}  // namespace

size_t many_rows_scratch_bytes(int64_t rows, int64_t hidden, int64_t top_k, int64_t experts,
                               int64_t width, int64_t shared_width) {
  ManyRowsScratch parts(nullptr);
  many_rows(parts, rows, hidden, top_k, experts, width, shared_width);
  return parts.used();
}

void run_many_rows(const Launcher& launcher, const ExpertsStep& step, std::byte* scratch) {
  ManyRowsScratch parts(scratch);
  ManyRows many = many_rows(parts, step.rows, step.hidden, step.top_k, step.experts, step.width,
                            step.shared_width);
  many.shared_tiles = step.shared_width > 0 ? (step.rows + kTileRows - 1) / kTileRows : 0;
  many.stages = tile_shared_bytes(kMostStages) <= size_t(launcher.shared_bytes) ? kMostStages : 2;
  const auto tiles =
      unsigned(many.shared_tiles + most_row_tiles(int64_t(step.rows) * step.top_k, step.experts));
  const size_t shared = tile_shared_bytes(many.stages);

  const int64_t slabs = step.rows * slab_count(step.hidden);
  constexpr int kSlabsPerBlock = kPrepareThreads / kWarp;
  launch(launcher, unsigned(1 + (slabs + kSlabsPerBlock - 1) / kSlabsPerBlock), kPrepareThreads, 0,
         prepare_kernel, step, many);
  allow_shared(gate_up_many_kernel, shared);
  const auto hidden_slabs = unsigned(slab_count(std::max(step.width, step.shared_width)));
  launch(launcher, dim3(hidden_slabs, tiles), kTileThreads, shared, gate_up_many_kernel, step,
         many);
  allow_shared(down_many_kernel, shared);
  const auto output_parts =
      unsigned((tile_count(step.hidden) + 2 * kTileWarps - 1) / (2 * kTileWarps));
  launch(launcher, dim3(output_parts, tiles), kTileThreads, shared, down_many_kernel, step, many);
  const auto combine = rows_of_quads(step.hidden, {step.out, many.outputs}) ? combine_kernel<true>
                                                                            : combine_kernel<false>;
  launch(launcher, unsigned(step.rows), kCombineThreads, 0, combine, step, many);
}

}  // namespace slip
