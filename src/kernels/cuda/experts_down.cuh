// out += weighted sum of down(activations) of all chosen experts and the shared one.
#pragma once

#include <optional>

#include "kernels/cuda/chosen_experts.cuh"
#include "kernels/cuda/slab_walk.cuh"

namespace slip {

inline constexpr int kMostDownTiles = 2;

// Slabs that a warp asks for at a time, to round them.
inline constexpr int kDownAtOnce = 4;

// Shared memory of a block, in bytes from its beginning.
struct DownLayout {
  int tiles, weights, gates, inputs, shared_inputs, values, shared_values, end;

  __host__ __device__ DownLayout(const ExpertsStep& step, int tiles_of_block) {
    const auto slabs_in = [](int in) { return (in + kSlabIn - 1) / kSlabIn; };
    const int slab_values = tiles_of_block * kTileOut * int(sizeof(float));
    const int pairs = step.rows * step.top_k;
    const int slabs = slabs_in(step.width), shared_slabs = slabs_in(step.shared_width);
    tiles = 0;
    weights = tiles + (pairs + 1) * tiles_of_block * int(sizeof(WeightTile));
    gates = weights + pairs * int(sizeof(float));
    inputs = (gates + step.rows * int(sizeof(float)) + 15) / 16 * 16;
    shared_inputs = inputs + rounded_inputs_bytes(pairs, slabs, step.down_forms);
    values = shared_inputs + rounded_inputs_bytes(step.rows, shared_slabs, step.shared_down_forms);
    shared_values = values + pairs * slabs * slab_values;
    end = shared_values + step.rows * shared_slabs * slab_values;
    // Of one row, inputs as they are lie there before there are values.
    const int raw = step.rows == 1 ? kWalkWarps * kDownAtOnce * kRawSlabBytes : 0;
    if (end < values + raw) end = values + raw;
  }
};

// A block has some tiles of outputs of all rows and experts, so that ranks can be summed in order
// and activations are rounded once for all tiles; warps share all slabs evenly.
template <bool kOneRow, SlabKind kExpertsKind, SlabKind kSharedKind, int kDownTiles>
__global__ void __launch_bounds__(kWalkThreads, 1)
    down_kernel(const __grid_constant__ ExpertsStep step, const float* activations) {
  std::byte* const memory = launch_memory;
  __shared__ ChosenExperts chosen;
  const int thread = int(threadIdx.x), warp = thread / kWarp;
  const int rows = kOneRow ? 1 : step.rows, pairs = rows * step.top_k;
  const int slabs = slabs_of(step.width), shared_slabs = slabs_of(step.shared_width);
  const int first_output = int(blockIdx.x) * kDownTiles * kTileOut;
  const DownLayout layout(step, kDownTiles);
  // [users][slabs][outputs]
  auto* values = reinterpret_cast<float*>(memory + layout.values);
  auto* shared_values = reinterpret_cast<float*>(memory + layout.shared_values);
  auto* tiles = reinterpret_cast<WeightTile*>(memory + layout.tiles);  // of experts, then shared
  auto* weights = reinterpret_cast<float*>(memory + layout.weights);
  auto* gates = reinterpret_cast<float*>(memory + layout.gates);

  // gate_up_kernel() lets this one begin when the choice of experts is there: weights can be on
  // their way while activations are computed.
  chosen.find<kOneRow>(step);
  constexpr int kOutputs = kDownTiles * kTileOut;
  static_assert(kFewRows * kOutputs <= kWalkThreads);
  const int own_row = thread / kOutputs, own_output = thread % kOutputs;
  const auto own_place = [&] {
    return own_row < rows && first_output + own_output < step.hidden
               ? step.out + int64_t(own_row) * step.hidden + first_output + own_output
               : nullptr;
  };
  const auto read_own = [&] {
    const float* own = own_place();
    return own && step.add ? __ldcg(own) : 0.0f;
  };
  float sum = kOneRow ? read_own() : 0.0f;  // with several rows registers are scarce
#pragma unroll 1
  for (int i = thread; i < pairs; i += kWalkThreads) weights[i] = __ldcg(step.weights + i);
  if (step.shared_gate && thread < rows) gates[thread] = sigmoid(__ldcg(step.shared_gate + thread));
  __syncthreads();
  const int experts = kOneRow ? step.top_k : chosen.count;
  const int last_tile = (step.hidden + kTileOut - 1) / kTileOut - 1;
#pragma unroll 1
  for (int i = thread; i < (experts + 1) * kDownTiles; i += kWalkThreads) {
    const int expert = i / kDownTiles;
    const int tile = min(int(blockIdx.x) * kDownTiles + i % kDownTiles, last_tile);
    tiles[i] = expert < experts
                   ? tile_of<kExpertsKind>(weight_of(step, kDown, chosen.experts[expert].id), tile,
                                           step.width)
                   : tile_of<kSharedKind>(step.shared.down, tile, step.shared_width);
  }
  const WeightTile* shared_tiles = tiles + experts * kDownTiles;
  __syncthreads();
  // Tiles of int4 side by side, others one after the other: they are larger.
  constexpr bool kWalks = kExpertsKind != SlabKind::any;
  constexpr int kTiles = is_int4(kExpertsKind) ? kDownTiles : 1;
  constexpr int kAhead = kExpertsKind == SlabKind::f16 && !kOneRow ? 1 : 2;
  SlabWalk<SlabWords<kExpertsKind>, kTiles, kAhead> walk(
      tiles, kWalks ? experts * (kDownTiles / kTiles) : 0, slabs);
  // Of several rows there is too much to have on its way.
  constexpr bool kSharedAhead = kOneRow && kSharedKind == SlabKind::fp8;
  using SharedWalk = SlabWalk<SlabWords<kSharedKind>, 1, 1>;
  const auto walk_shared = [&] {
    return SharedWalk(shared_tiles, shared_slabs > 0 ? kDownTiles : 0, max(shared_slabs, 1));
  };
  std::optional<SharedWalk> shared_walk;
  if constexpr (kSharedAhead) shared_walk.emplace(walk_shared());
  if constexpr (kSharedKind == SlabKind::f16)
#pragma unroll 1
    for (int t = 0; t < kDownTiles; ++t)
      prefetch_bytes(shared_tiles[t].values, tile_bytes(shared_tiles[t], shared_slabs), thread,
                     kWalkThreads);

  wait_for_inputs();
  let_next_begin();
  const RoundedInputs<kExpertsKind> inputs(memory + layout.inputs, activations, pairs, step.width,
                                           step.down_forms);
  const RoundedInputs<kSharedKind> shared_inputs(memory + layout.shared_inputs,
                                                 activations + int64_t(pairs) * step.width, rows,
                                                 step.shared_width, step.shared_down_forms);
  float4* raw = reinterpret_cast<float4*>(values) + warp * kDownAtOnce * kWarp;
  const int shared_rows = shared_slabs > 0 ? rows : 0;
  const int last_warp = kWalkWarps - 1 - warp;  // others have fewer of the experts' slabs
  if constexpr (kOneRow) {
    float4 shared_x;
    inputs.template round<kDownAtOnce, 2>(pairs, warp, kWalkWarps, raw, [&] {
      shared_x = shared_inputs.ask_slab(last_warp);
      if constexpr (kWalks) walk.prefetch_rest();
    });
#pragma unroll 1
    for (int slab = last_warp; slab < shared_slabs; slab += kWalkWarps) {
      if (slab != last_warp) shared_x = shared_inputs.ask_slab(slab);
      shared_inputs.round_item(slab, shared_x);
    }
  } else {
    shared_inputs.template round<1, 1>(shared_rows, last_warp, kWalkWarps, raw, [] {});
    inputs.template round<kDownAtOnce, kDownAtOnce>(pairs, warp, kWalkWarps, raw, [] {});
  }
  __syncthreads();

  const auto place = [](float* from, int slab) { return from + slab * kOutputs; };
  const auto put = [&](const SlabCursor& at, const auto& take) {
    const ChosenExperts::Expert& expert = chosen.experts[at.slot];
    const auto values_of = [&](int user, int t) {
      const int pair = kOneRow ? at.slot : chosen.pairs[expert.first + user].index;
      return place(values, pair * slabs + at.slab) + t * kTileOut;
    };
    if constexpr (kOneRow)
      take(OneUser{at.slot}, values_of);
    else
      take(Users{expert.users, [&](int i) { return int(chosen.pairs[expert.first + i].index); }},
           values_of);
  };
  const auto outputs_of = [&](int t) {
    return min(kTileOut, max(0, step.hidden - first_output - t * kTileOut));
  };
  if constexpr (kWalks) {
    walk.run([&](const auto& words, const SlabCursor& at) {
      if constexpr (kTiles == kDownTiles) {
        put(at, [&](const auto& users, const auto& values_of) {
          put_slab(words, inputs, at.slab, users, values_of);
        });
      } else {
        put({at.slot / kDownTiles, at.slab}, [&](const auto& users, const auto& values_of) {
          put_slab(words, inputs, at.slab, users,
                   [&](int user, int) { return values_of(user, at.slot % kDownTiles); });
        });
      }
    });
  } else {
#pragma unroll 1
    for (SlabCursor at(slabs); at.slot < experts; at.advance(slabs))
      put(at, [&](const auto& users, const auto& values_of) {
#pragma unroll 1
        for (int t = 0; t < kDownTiles; ++t)
          put_values(tiles[at.slot * kDownTiles + t], outputs_of(t), inputs, at.slab, users,
                     [&](int user, int) { return values_of(user, t); });
      });
  }
  const auto shared_place = [&](int row, int slab, int t) {
    return place(shared_values, row * shared_slabs + slab) + t * kTileOut;
  };
  const auto all_rows = [&] {
    if constexpr (kOneRow)
      return OneUser{0};
    else
      return Users{rows, [](int row) { return row; }};
  }();
  if constexpr (kSharedKind != SlabKind::any) {
    if constexpr (!kSharedAhead) shared_walk.emplace(walk_shared());
    shared_walk->run([&](const auto& words, const SlabCursor& at) {
      put_slab(words, shared_inputs, at.slab, all_rows,
               [&](int row, int) { return shared_place(row, at.slab, at.slot); });
    });
  } else {
#pragma unroll 1
    for (int i = warp; i < shared_slabs * kDownTiles; i += kWalkWarps) {
      const int slab = i / kDownTiles, t = i % kDownTiles;
      put_values(shared_tiles[t], outputs_of(t), shared_inputs, slab, all_rows,
                 [&](int row, int) { return shared_place(row, slab, t); });
    }
  }
  __syncthreads();

  // Slabs in order, into the place of the first; then experts in order.
#pragma unroll 1
  for (int i = thread; i < (pairs + shared_rows) * kOutputs; i += kWalkThreads) {
    const int user = i / kOutputs;
    float* column = user < pairs ? place(values, user * slabs)
                                 : place(shared_values, (user - pairs) * shared_slabs);
    column += i % kOutputs;
    *column = sum_of_slabs<kOutputs>(column, user < pairs ? slabs : shared_slabs);
  }
  __syncthreads();
  float* own = own_place();
  if (own == nullptr) return;
  if (!kOneRow) sum = read_own();
#pragma unroll 8
  for (int pair = own_row * step.top_k; pair < (own_row + 1) * step.top_k; ++pair)
    sum = fmaf(weights[pair], place(values, pair * slabs)[own_output], sum);
  if (shared_slabs > 0) {
    const float of_shared = place(shared_values, own_row * shared_slabs)[own_output];
    if (step.shared_out)
      step.shared_out[own - step.out] = of_shared;
    else
      sum = fmaf(gates[own_row], of_shared, sum);
  }
  *own = sum;
}

}  // namespace slip
