// Mixture of experts, few rows: two kernels that read every chosen expert once, whoever chose it.
#include <algorithm>

#include "kernels/cuda/chosen_experts.cuh"
#include "kernels/cuda/experts.h"
#include "kernels/cuda/slab_ring.cuh"

namespace slip {
namespace {

constexpr int kMostGateUpWarps = 6;
constexpr int kMostDownWarps = 12;
constexpr int kFewestDownWarps = 4;
constexpr int kLineWeights = 128 / sizeof(ExpertWeight);  // of a table, in a line of cache

constexpr size_t gate_up_shared(int warps, int ring_units, int rows, int slabs) {
  return size_t(warps) * size_t(warp_bytes(ring_units, rows)) +
         size_t(rows) * 2 * size_t(slabs) * kTileOut * sizeof(float);
}

// activations = silu(gate x) * (up x), or GELU. Block (t, n): outputs 16 t .. 16 t + 15 of the
// expert of pair n, for all rows that chose it, unless an earlier pair chose it too. The shared
// expert, if there is one, comes before all pairs.
template <int kColumns, int kSlots>
__global__ void __launch_bounds__(kMostGateUpWarps* kWarp, kColumns == 1 ? 3 : 1)
    gate_up_kernel(ExpertsStep step, float* activations) {
  extern __shared__ __align__(128) std::byte memory[];
  __shared__ WeightTile tiles[2];
  __shared__ int32_t users[kFewRows];    // pairs, or rows of the shared expert
  __shared__ int32_t sources[kFewRows];  // their rows
  __shared__ int user_count;
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
  const int warps = int(blockDim.x) / kWarp;
  const bool has_shared = step.shared_width > 0;
  const bool is_shared = has_shared && blockIdx.y == 0;
  const int pair = int(blockIdx.y) - (has_shared ? 1 : 0);
  const int pairs = step.rows * step.top_k;
  const int tile = int(blockIdx.x);
  const int width = is_shared ? step.shared_width : step.width;
  const int outputs = min(kTileOut, width - tile * kTileOut);

  // The table has left the caches since the last step, and is back when the choice is known.
  if (tile == 0 && pair == 0)
    for (int i = int(threadIdx.x); i * kLineWeights < 3 * step.experts; i += int(blockDim.x))
      prefetch_line(step.table + i * kLineWeights);

  // Only the shared expert is known before. All other blocks wait, also those with nothing to do:
  // down_kernel() relies on it.
  if (!is_shared || outputs <= 0) wait_for_inputs();
  if (outputs <= 0) return;
  if (is_shared) {
    if (threadIdx.x < 2)
      tiles[threadIdx.x] =
          weight_tile(threadIdx.x == 0 ? step.shared.gate : step.shared.up, tile, step.hidden);
    if (int(threadIdx.x) < step.rows) users[threadIdx.x] = sources[threadIdx.x] = int(threadIdx.x);
    if (threadIdx.x == 0) user_count = step.rows;
  } else if (warp == 0) {
    const int count = find_users(step.ids, pairs, pair, step.rows, users);
    __syncwarp();
    if (lane < count) sources[lane] = users[lane] / step.top_k;
    if (lane == 0) user_count = count;
  } else if (warp == 1 && lane < 2) {
    tiles[lane] = weight_tile(step.table[lane * step.experts + step.ids[pair]], tile, step.hidden);
  }
  __syncthreads();
  if (!is_shared && users[0] != pair) return;
  const int count = user_count;
  const int slabs = slabs_of(step.hidden);

  const WarpMemory mine(memory, 2 * kSlots, step.rows);
  // [count][gate, up][slabs][16 outputs]
  float* values = reinterpret_cast<float*>(memory + warps * warp_bytes(2 * kSlots, step.rows));
  const SlabInputs inputs{.rounded = mine.rounded,
                          .units = mine.units,
                          .users = sources,
                          .count = count,
                          .rows = step.x,
                          .in = step.hidden,
                          .in_quads = in_quads(step.x, step.hidden)};
  const auto values_at = [&](int row, int tile_index, int slab) {
    return values + ((row * 2 + tile_index) * slabs + slab) * kTileOut;
  };
  // Both weights at once if they lie alike.
  const SlabRun run{tiles, warp, slabs, warps};
  if (tiles[0].units > 0 && tiles[0].format == tiles[1].format &&
      tiles[0].group == tiles[1].group) {
    SlabRing<2, kSlots, OneRun> ring(mine.ring, {run});
    if (is_shared) wait_for_inputs();
    let_next_begin();
    take_run<kColumns>(ring, run, inputs, values_at);
  } else {
    if (is_shared) wait_for_inputs();
    let_next_begin();
#pragma unroll 1
    for (int w = 0; w < 2; ++w) {
      const SlabRun run_of_one{tiles + w, warp, slabs, warps};
      const auto values_of = [&](int row, int, int slab) { return values_at(row, w, slab); };
      if (tiles[w].units > 0) {
        SlabRing<1, 2 * kSlots, OneRun> ring(mine.ring, {run_of_one});
        take_run<kColumns>(ring, run_of_one, inputs, values_of);
      } else {
        take_float_run(run_of_one, outputs, inputs, values_of);
      }
    }
  }
  __syncthreads();

  // One warp, one row: half of it sums gate, the other half up.
  float* results = is_shared ? activations + int64_t(pairs) * step.width : activations;
  for (int i = warp; i < count; i += warps) {
    const float* column = values + (i * 2 + lane / kTileOut) * slabs * kTileOut + lane % kTileOut;
    const float sum = sum_of_slabs(column, slabs);
    const float up = __shfl_down_sync(~0u, sum, kTileOut);
    if (lane < outputs)
      results[int64_t(users[i]) * width + tile * kTileOut + lane] = activated(sum, step.gelu) * up;
  }
}

// A warp's part of all slabs, in pieces of up to kBatchSlabs: those of the shared expert, then
// those of each chosen one. Every warp takes each `warps`-th piece.
struct DownRuns {
  int piece, warps;
  int shared_pieces, pieces;            // of the shared expert, of all
  int shared_piece_slabs, piece_slabs;  // of a piece
  int pieces_per_expert;                // of chosen ones
  int slabs, shared_slabs;
  const int32_t* firsts;  // the first pair of each chosen expert
  const WeightTile* tiles;
  int first_pair = -1;  // of the expert of the last run; -1: the shared one

  __device__ bool next(SlabRun& run) {
    if (piece >= pieces) return false;
    if (piece < shared_pieces) {
      const int first = piece * shared_piece_slabs;
      run = {tiles, first, min(first + shared_piece_slabs, shared_slabs), 1};
    } else {
      const int routed = piece - shared_pieces, expert = routed / pieces_per_expert;
      const int first = (routed - expert * pieces_per_expert) * piece_slabs;
      first_pair = firsts[expert];
      run = {tiles + 1 + first_pair, first, min(first + piece_slabs, slabs), 1};
    }
    piece += warps;
    return true;
  }
};

// Shared memory of a block, in bytes from its beginning.
struct DownLayout {
  int values, shared_values, tiles, ids, firsts, weights, gates, base, end;

  __host__ __device__ DownLayout(int warps, int ring_units, int rows, int top_k, int slabs,
                                 int shared_slabs) {
    const int pairs = rows * top_k;
    values = warps * warp_bytes(ring_units, rows);
    shared_values = values + pairs * slabs * kTileOut * int(sizeof(float));
    tiles = shared_values + rows * shared_slabs * kTileOut * int(sizeof(float));
    ids = tiles + (1 + pairs) * int(sizeof(WeightTile));
    firsts = ids + pairs * int(sizeof(int32_t));
    weights = firsts + pairs * int(sizeof(int32_t));
    gates = weights + pairs * int(sizeof(float));
    base = gates + rows * int(sizeof(float));
    end = base + rows * kTileOut * int(sizeof(float));
  }
};

// out += weighted sum of down(activations). Block t: outputs 16 t .. 16 t + 15 of all rows and
// experts, so that ranks can be summed in order; warps share all slabs evenly.
template <int kColumns, int kSlots>
__global__ void __launch_bounds__(kMostDownWarps* kWarp, kColumns == 1 ? 2 : 1)
    down_kernel(ExpertsStep step, const float* activations) {
  extern __shared__ __align__(128) std::byte memory[];
  __shared__ uint32_t seen[kMostExperts / 32];
  __shared__ int expert_count;
  const int warps = int(blockDim.x) / kWarp, warp = int(threadIdx.x) / kWarp;
  const int threads = int(blockDim.x), thread = int(threadIdx.x);
  const int rows = step.rows, pairs = rows * step.top_k;
  const int slabs = slabs_of(step.width), shared_slabs = slabs_of(step.shared_width);
  const int tile = int(blockIdx.x), first_output = tile * kTileOut;
  const int outputs = min(kTileOut, step.hidden - first_output);
  const DownLayout layout(warps, kSlots, rows, step.top_k, slabs, shared_slabs);
  auto* values = reinterpret_cast<float*>(memory + layout.values);  // [pairs][slabs][16]
  auto* shared_values = reinterpret_cast<float*>(memory + layout.shared_values);
  auto* tiles = reinterpret_cast<WeightTile*>(memory + layout.tiles);
  auto* ids = reinterpret_cast<int32_t*>(memory + layout.ids);
  auto* firsts = reinterpret_cast<int32_t*>(memory + layout.firsts);
  auto* weights = reinterpret_cast<float*>(memory + layout.weights);
  auto* gates = reinterpret_cast<float*>(memory + layout.gates);
  auto* base = reinterpret_cast<float*>(memory + layout.base);

  // The choice of experts is older than gate_up_kernel(), all of whose blocks have waited for it
  // before they let this one begin: weights can be on their way while activations are computed.
  for (int i = thread; i < pairs; i += threads) {
    ids[i] = __ldcg(step.ids + i);
    tiles[1 + i] = weight_tile(step.table[2 * step.experts + ids[i]], tile, step.width);
  }
  if (thread == 0 && shared_slabs > 0)
    tiles[0] = weight_tile(step.shared.down, tile, step.shared_width);
  if (thread < kMostExperts / 32) seen[thread] = 0;
  __syncthreads();
  if (warp == 0) {
    const int count = find_firsts(ids, pairs, seen, firsts);
    if (thread == 0) expert_count = count;
  }
  __syncthreads();

  // Pieces have equally many bytes, as far as formats are known.
  const auto piece_slabs_of = [](const WeightTile& of) {
    return of.units == 2 ? kBatchSlabs / 2 : kBatchSlabs;
  };
  const int shared_piece_slabs = shared_slabs > 0 ? piece_slabs_of(tiles[0]) : 1;
  const int piece_slabs = pairs > 0 ? piece_slabs_of(tiles[1]) : 1;
  const int shared_pieces = (shared_slabs + shared_piece_slabs - 1) / shared_piece_slabs;
  const int pieces_per_expert = (slabs + piece_slabs - 1) / piece_slabs;
  DownRuns runs{.piece = warp,
                .warps = warps,
                .shared_pieces = shared_pieces,
                .pieces = shared_pieces + expert_count * pieces_per_expert,
                .shared_piece_slabs = shared_piece_slabs,
                .piece_slabs = piece_slabs,
                .pieces_per_expert = pieces_per_expert,
                .slabs = slabs,
                .shared_slabs = shared_slabs,
                .firsts = firsts,
                .tiles = tiles};
  const WarpMemory mine(memory, kSlots, rows);
  SlabRing<1, kSlots, DownRuns> ring(mine.ring, runs);

  wait_for_inputs();
  let_next_begin();
  for (int i = thread; i < pairs; i += threads) weights[i] = step.weights[i];
  if (shared_slabs > 0 && thread < rows) gates[thread] = sigmoid(step.shared_gate[thread]);
  for (int i = thread; i < rows * kTileOut; i += threads)
    if (i % kTileOut < outputs)
      base[i] = step.add
                    ? step.out[int64_t(i / kTileOut) * step.hidden + first_output + i % kTileOut]
                    : 0.0f;

  SlabInputs inputs{.rounded = mine.rounded,
                    .units = mine.units,
                    .users = mine.users,
                    .count = 0,
                    .rows = nullptr,
                    .in = 0,
                    .in_quads = false};
  SlabRun run;
  while (runs.next(run)) {
    const bool is_shared = run.tiles == tiles;
    inputs.rows = is_shared ? activations + int64_t(pairs) * step.width : activations;
    inputs.in = is_shared ? step.shared_width : step.width;
    inputs.in_quads = in_quads(inputs.rows, inputs.in);
    __syncwarp();
    if (is_shared) {
      inputs.count = rows;
      if (thread % kWarp < rows) mine.users[thread % kWarp] = thread % kWarp;
    } else {
      inputs.count = find_users(ids, pairs, runs.first_pair, rows, mine.users);
    }
    __syncwarp();
    float* run_values = is_shared ? shared_values : values;
    const int run_slabs = is_shared ? shared_slabs : slabs;
    const auto values_of = [&](int i, int, int slab) {
      return run_values + (mine.users[i] * run_slabs + slab) * kTileOut;
    };
    if (run.tiles->units > 0)
      take_run<kColumns>(ring, run, inputs, values_of);
    else
      take_float_run(run, outputs, inputs, values_of);
  }
  __syncthreads();

  // Slabs in order, into the place of the first; then experts in order.
  for (int i = thread; i < (pairs + (shared_slabs > 0 ? rows : 0)) * kTileOut; i += threads) {
    const int user = i / kTileOut;
    float* column = user < pairs ? values + user * slabs * kTileOut
                                 : shared_values + (user - pairs) * shared_slabs * kTileOut;
    column += i % kTileOut;
    *column = sum_of_slabs(column, user < pairs ? slabs : shared_slabs);
  }
  __syncthreads();
  for (int i = thread; i < rows * kTileOut; i += threads) {
    const int row = i / kTileOut, output = i % kTileOut;
    if (output >= outputs) continue;
    float sum = base[i];
#pragma unroll 8
    for (int pair = row * step.top_k; pair < (row + 1) * step.top_k; ++pair)
      sum = fmaf(weights[pair], values[pair * slabs * kTileOut + output], sum);
    if (shared_slabs > 0)
      sum = fmaf(gates[row], shared_values[row * shared_slabs * kTileOut + output], sum);
    step.out[int64_t(row) * step.hidden + first_output + output] = sum;
  }
}

int tiles_of(int outputs) { return int(tile_count(outputs)); }

// How the kernels are cut for a step.
// Rings: deeper ones leave room for fewer blocks per multiprocessor, and were slower.
constexpr int kGateUpSlots = 2;  // a slot is a unit of gate and one of up
constexpr int kDownSlots = 4;

struct FewRowsPlan {
  int gate_up_warps = 6;
  int down_warps = kMostDownWarps;
};

size_t gate_up_shared(const ExpertsStep& step, const FewRowsPlan& plan) {
  return gate_up_shared(plan.gate_up_warps, 2 * kGateUpSlots, step.rows,
                        int(slab_count(step.hidden)));
}

size_t down_shared(const ExpertsStep& step, const FewRowsPlan& plan) {
  return size_t(DownLayout(plan.down_warps, kDownSlots, step.rows, step.top_k,
                           int(slab_count(step.width)), int(slab_count(step.shared_width)))
                    .end);
}

// Whether a plan exists: kernels in less shared memory have fewer warps.
bool make_plan(const ExpertsStep& step, size_t most, FewRowsPlan& plan) {
  plan = {};
  while (plan.gate_up_warps > 1 && gate_up_shared(step, plan) > most) --plan.gate_up_warps;
  while (plan.down_warps > kFewestDownWarps && down_shared(step, plan) > most) --plan.down_warps;
  return gate_up_shared(step, plan) <= most && down_shared(step, plan) <= most;
}

template <int kColumns>
void launch_few_rows(const Launcher& launcher, const ExpertsStep& step, const FewRowsPlan& plan,
                     float* activations) {
  const bool has_shared = step.shared_width > 0;
  const dim3 grid(unsigned(tiles_of(std::max(step.top_k > 0 ? step.width : 0, step.shared_width))),
                  unsigned(step.rows * step.top_k + (has_shared ? 1 : 0)));
  const auto gate_up = gate_up_kernel<kColumns, kGateUpSlots>;
  allow_shared(gate_up, gate_up_shared(step, plan));
  launch(launcher, grid, unsigned(plan.gate_up_warps * kWarp), gate_up_shared(step, plan), gate_up,
         step, activations);
  const auto down = down_kernel<kColumns, kDownSlots>;
  allow_shared(down, down_shared(step, plan));
  launch(launcher, unsigned(tiles_of(step.hidden)), unsigned(plan.down_warps * kWarp),
         down_shared(step, plan), down, step, activations);
}

}  // namespace

void run_few_rows(const Launcher& launcher, const ExpertsStep& step, float* activations) {
  const auto most = size_t(launcher.shared_bytes - 1024);  // some of it is declared in the kernels
  FewRowsPlan plan;
  ExpertsStep part = step;
  part.rows = std::min(step.rows, int(kFewRows));
  while (part.rows > 1 && !make_plan(part, most, plan)) part.rows = (part.rows + 1) / 2;
  const int at_once = part.rows;
  check(make_plan(part, most, plan), "experts: a row needs more shared memory than ", most,
        " bytes");
  for (int first = 0; first < step.rows; first += at_once) {
    part = step;
    part.rows = std::min(at_once, step.rows - first);
    part.x += int64_t(first) * step.hidden;
    part.out += int64_t(first) * step.hidden;
    part.ids += int64_t(first) * step.top_k;
    part.weights += int64_t(first) * step.top_k;
    if (step.shared_width > 0) part.shared_gate += first;
    if (part.rows <= kMmaRows)
      launch_few_rows<1>(launcher, part, plan, activations);
    else
      launch_few_rows<2>(launcher, part, plan, activations);
  }
}

}  // namespace slip
