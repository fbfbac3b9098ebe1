// Mixture of experts, few rows: two kernels that read every chosen expert once, whoever chose it.
//
// Both are bound by the instructions around each slab as much as by its bytes, so little is decided
// there: a block finds its tiles and rounds its activations once, and warps then walk over slabs,
// the next ones always on their way to registers.
#include <algorithm>

#include "kernels/cuda/chosen_experts.cuh"
#include "kernels/cuda/experts.h"
#include "kernels/cuda/slab_walk.cuh"

namespace slip {
namespace {

constexpr int kWarps = kWalkWarps;  // one block per multiprocessor
constexpr int kThreads = kWarps * kWarp;
static_assert(kThreads >= kMostPairs);
constexpr int kInt4Ahead = 2;  // slabs of all of its tiles that a warp has asked for
constexpr int kMostDownTiles = 2;
constexpr int kLineWeights = 128 / sizeof(ExpertWeight);  // of a table, in a line of cache

// What the kernels are compiled for: code for more would take registers from their loops.
enum class Kinds : uint8_t {
  usual,        // int4 in groups of 128; shared expert the same, in fp8, or none
  bf16_shared,  // the same with a shared expert in bf16, whose matrices are whole slabs
  any,
};

// What a block of gate_up_kernel() works on at a time: tiles of 16 outputs of gate and up.
struct GateUpBatch {
  static constexpr int kMostSlots = kWarp;
  struct Slot {
    int32_t tile;         // of its expert
    int32_t first_entry;  // of its users; a place for values each
    int32_t first_user, users;
  };
  WeightTile tiles[kMostSlots][2];
  Slot slots[kMostSlots];
  int32_t count;
};

// How the blocks of gate_up_kernel() share the work: the first ones have the shared expert.
struct GateUpShares {
  int32_t blocks, shared_blocks;
  int32_t entries;  // users of a batch's tiles
};

int gate_up_shared(const ExpertsStep& step, int entries) {
  const int slabs = int(slab_count(step.hidden));
  const auto bytes = [&](const InputForms& forms) {
    return RoundedInputs::bytes(step.rows, slabs, forms);
  };
  return std::max(step.top_k > 0 ? bytes(step.forms) : 0,
                  step.shared_width > 0 ? bytes(step.shared_forms) : 0) +
         entries * 2 * slabs * kTileOut * int(sizeof(float));
}

// activations = silu(gate x) * (up x), or GELU, of all chosen experts and the shared one.
template <bool kOneRow, Kinds kKinds>
__global__ void __launch_bounds__(kThreads, 1)
    gate_up_kernel(const __grid_constant__ ExpertsStep step, float* activations,
                   GateUpShares shares) {
  extern __shared__ __align__(128) std::byte memory[];
  __shared__ ChosenExperts chosen;
  __shared__ GateUpBatch batch;
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
  const bool is_shared = int(blockIdx.x) < shares.shared_blocks;
  const int block = int(blockIdx.x) - (is_shared ? 0 : shares.shared_blocks);
  const int blocks = is_shared ? shares.shared_blocks : shares.blocks - shares.shared_blocks;
  const int width = is_shared ? step.shared_width : step.width;
  const int tiles = (width + kTileOut - 1) / kTileOut, slabs = slabs_of(step.hidden);
  const InputForms& forms = is_shared ? step.shared_forms : step.forms;
  const bool shared_fp8 = is_shared && !forms.integers;  // of usual ones
  const RoundedInputs inputs(memory, step.x, step.rows, step.hidden, forms);
  // [entries][gate, up][slabs][16 outputs]
  auto* values = reinterpret_cast<float*>(memory + RoundedInputs::bytes(step.rows, slabs, forms));

  // Known before the choice: the shared expert. And the table has left the caches since the last
  // step.
  if (is_shared) {
    for (int tile = block; tile < tiles; tile += blocks) {
      for (const ExpertWeight& weight : {step.shared.gate, step.shared.up}) {
        const WeightTile of = weight_tile(weight, tile, step.hidden);
        prefetch_bytes(of.values, tile_bytes(of, slabs), int(threadIdx.x), kThreads);
      }
    }
  } else if (block == 0 && step.weights_of[kGate].stride == 0) {
    for (int i = int(threadIdx.x); i * kLineWeights < kExpertMatrices * step.experts; i += kThreads)
      prefetch_line(step.table + i * kLineWeights);
  }
  // All blocks wait before they let the next kernel begin: it reads the choice, too.
  wait_for_inputs();
  let_next_begin();

  const int experts = is_shared ? 1 : chosen.find(step);
  if (!is_shared && !kOneRow) __syncthreads();
  const auto users_of = [&](const GateUpBatch::Slot& slot) {
    if constexpr (kOneRow)
      return OneUser{0};
    else
      return Users{slot.users, [&, first = slot.first_user, is_shared](int i) {
                     return is_shared ? i : chosen.pairs[first + i] / step.top_k;
                   }};
  };

  for (int done = 0, count = 0;; done += count) {
    // One warp finds the tiles, the others round (the first time).
    if (warp == 0) {
      if (kOneRow) __syncwarp();
      const int index = block + (done + lane) * blocks;
      const bool exists = index < experts * tiles;
      const int expert = exists ? index / tiles : 0, tile = index - expert * tiles;
      int id = -1, first_user = 0, users = exists ? step.rows : 0;
      if (exists && !is_shared) {
        const ChosenExperts::Expert found = chosen.experts[expert];
        id = found.id;
        first_user = found.first;
        users = found.users;
      }
      int entries = users;  // up to and with this lane's
      for (int distance = 1; distance < kWarp; distance *= 2) {
        const int more = __shfl_up_sync(~0u, entries, distance);
        if (lane >= distance) entries += more;
      }
      const bool fits = exists && entries <= shares.entries;
      if (fits) {
        batch.slots[lane] = {tile, entries - users, first_user, users};
        const ExpertWeight gate = is_shared ? step.shared.gate : weight_of(step, kGate, id);
        const ExpertWeight up = is_shared ? step.shared.up : weight_of(step, kUp, id);
        batch.tiles[lane][0] = weight_tile(gate, tile, step.hidden);
        batch.tiles[lane][1] = weight_tile(up, tile, step.hidden);
      }
      const uint32_t slots = __ballot_sync(~0u, fits);
      if (lane == 0) batch.count = __popc(slots);
    } else if (done == 0) {
      auto share = inputs.ask<2>(step.rows, warp - 1, kWarps - 1);
      inputs.round(share);
    }
    __syncthreads();
    count = batch.count;
    if (count == 0) return;

    const auto put = [&](const SlabCursor& at, const auto& take) {
      const GateUpBatch::Slot& slot = batch.slots[at.slot];
      take(slot, users_of(slot), [&](int user, int which) {
        return values + (((slot.first_entry + user) * 2 + which) * slabs + at.slab) * kTileOut;
      });
    };
    if (kKinds != Kinds::any && !is_shared) {
      SlabWalk<Int4Words, 2, kInt4Ahead> walk(&batch.tiles[0][0], count, slabs);
      walk.run([&](const Int4Words(&words)[2], const SlabCursor& at) {
        put(at, [&](const auto&, const auto& users, const auto& values_of) {
          put_int4_values(words, inputs, at.slab, users, values_of);
        });
      });
    } else if constexpr (kKinds == Kinds::bf16_shared) {
      // Gate and up one after the other.
      SlabWalk<Bf16Words, 1, 1> walk(&batch.tiles[0][0], count * 2, slabs);
      walk.run([&](const Bf16Words(&words)[1], const SlabCursor& at) {
        put({at.slot / 2, at.slab}, [&](const auto&, const auto& users, const auto& values_of) {
          put_bf16_values(words[0], inputs, at.slab, users,
                          [&](int user, int) { return values_of(user, at.slot % 2); });
        });
      });
    } else if (kKinds == Kinds::usual && kOneRow && shared_fp8) {
      SlabWalk<HalfWords<Fp8Slab>, 1, 2> walk(&batch.tiles[0][0], count * 2, slabs);
      walk.run([&](const HalfWords<Fp8Slab>(&words)[1], const SlabCursor& at) {
        const SlabCursor pair{at.slot / 2, at.slab};
        put(pair, [&](const auto&, const auto& users, const auto& values_of) {
          put_half_values<Fp8Slab, 4>(words[0], inputs, at.slab, users,
                                      [&](int user, int) { return values_of(user, at.slot % 2); });
        });
      });
    } else {
#pragma unroll 1
      for (SlabCursor at(slabs); at.slot < count; at.advance(slabs))
        put(at, [&](const GateUpBatch::Slot& slot, const auto& users, const auto& values_of) {
          const int outputs = min(kTileOut, width - slot.tile * kTileOut);
#pragma unroll 1
          for (int which = 0; which < 2; ++which)
            put_values<kKinds == Kinds::usual>(
                batch.tiles[at.slot][which], outputs, inputs, at.slab, users,
                [&](int user, int) { return values_of(user, which); });
        });
    }
    __syncthreads();

    // One warp, one user: half of it sums gate, the other half up.
    float* results =
        is_shared ? activations + int64_t(step.rows) * step.top_k * step.width : activations;
    const GateUpBatch::Slot& last = batch.slots[count - 1];
    for (int entry = warp, at = 0; entry < last.first_entry + last.users; entry += kWarps) {
      while (entry >= batch.slots[at].first_entry + batch.slots[at].users) ++at;
      const GateUpBatch::Slot& slot = batch.slots[at];
      const float* column =
          values + (entry * 2 + lane / kTileOut) * slabs * kTileOut + lane % kTileOut;
      const float sum = sum_of_slabs<kTileOut>(column, slabs);
      const float up = __shfl_down_sync(~0u, sum, kTileOut);
      const int user = entry - slot.first_entry;
      const int row = is_shared ? user : chosen.pairs[slot.first_user + user];
      const int output = slot.tile * kTileOut + lane;
      if (lane < kTileOut && output < width)
        results[int64_t(row) * width + output] = activated(sum, step.gelu) * up;
    }
    __syncthreads();
  }
}

// Shared memory of a block of down_kernel(), in bytes from its beginning.
struct DownLayout {
  int shared_inputs, values, shared_values, tiles, weights, gates, end;

  __host__ __device__ DownLayout(const ExpertsStep& step, int tiles_of_block) {
    const auto slabs_in = [](int in) { return (in + kSlabIn - 1) / kSlabIn; };
    const int slab_values = tiles_of_block * kTileOut * int(sizeof(float));
    const int pairs = step.rows * step.top_k;
    const int slabs = slabs_in(step.width), shared_slabs = slabs_in(step.shared_width);
    shared_inputs = RoundedInputs::bytes(pairs, slabs, step.forms);
    values = shared_inputs + RoundedInputs::bytes(step.rows, shared_slabs, step.shared_forms);
    shared_values = values + pairs * slabs * slab_values;
    tiles = shared_values + step.rows * shared_slabs * slab_values;
    weights = tiles + (pairs + 1) * tiles_of_block * int(sizeof(WeightTile));
    gates = weights + pairs * int(sizeof(float));
    end = gates + step.rows * int(sizeof(float));
  }
};

// out += weighted sum of down(activations). A block has some tiles of outputs of all rows and
// experts, so that ranks can be summed in order and activations are rounded once for all tiles;
// warps share all slabs evenly.
template <bool kOneRow, Kinds kKinds, int kDownTiles>
__global__ void __launch_bounds__(kThreads, 1)
    down_kernel(const __grid_constant__ ExpertsStep step, const float* activations) {
  extern __shared__ __align__(128) std::byte memory[];
  __shared__ ChosenExperts chosen;
  const int thread = int(threadIdx.x), warp = thread / kWarp;
  const int rows = step.rows, pairs = rows * step.top_k;
  const int slabs = slabs_of(step.width), shared_slabs = slabs_of(step.shared_width);
  const int first_output = int(blockIdx.x) * kDownTiles * kTileOut;
  const DownLayout layout(step, kDownTiles);
  // [users][slabs][outputs]
  auto* values = reinterpret_cast<float*>(memory + layout.values);
  auto* shared_values = reinterpret_cast<float*>(memory + layout.shared_values);
  auto* tiles = reinterpret_cast<WeightTile*>(memory + layout.tiles);  // of experts, then shared
  auto* weights = reinterpret_cast<float*>(memory + layout.weights);
  auto* gates = reinterpret_cast<float*>(memory + layout.gates);

  // The choice of experts is older than gate_up_kernel(), all of whose blocks have waited for it
  // before they let this one begin: weights can be on their way while activations are computed.
  const int experts = chosen.find(step);
  constexpr int kOutputs = kDownTiles * kTileOut;
  static_assert(kFewRows * kOutputs <= kThreads);
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
  for (int i = thread; i < pairs; i += kThreads) weights[i] = __ldcg(step.weights + i);
  if (shared_slabs > 0 && thread < rows) gates[thread] = sigmoid(__ldcg(step.shared_gate + thread));
  __syncthreads();
  const int last_tile = (step.hidden + kTileOut - 1) / kTileOut - 1;
  for (int i = thread; i < (experts + 1) * kDownTiles; i += kThreads) {
    const int expert = i / kDownTiles;
    const int tile = min(int(blockIdx.x) * kDownTiles + i % kDownTiles, last_tile);
    if (expert < experts)
      tiles[i] = weight_tile(weight_of(step, kDown, chosen.experts[expert].id), tile, step.width);
    else
      tiles[i] = weight_tile(step.shared.down, tile, step.shared_width);
  }
  const WeightTile* shared_tiles = tiles + experts * kDownTiles;
  __syncthreads();
  SlabWalk<Int4Words, kDownTiles, kInt4Ahead> walk(tiles, kKinds != Kinds::any ? experts : 0,
                                                   slabs);
  const bool shared_fp8 =
      kKinds == Kinds::usual && kOneRow && shared_slabs > 0 && !step.shared_forms.integers;
  SlabWalk<HalfWords<Fp8Slab>, 1, 1> shared_walk(shared_tiles, shared_fp8 ? kDownTiles : 0,
                                                 max(shared_slabs, 1));
  if (kKinds == Kinds::bf16_shared)
    for (int t = 0; t < kDownTiles; ++t)
      prefetch_bytes(shared_tiles[t].values, tile_bytes(shared_tiles[t], shared_slabs), thread,
                     kThreads);

  wait_for_inputs();
  let_next_begin();
  const RoundedInputs inputs(memory, activations, pairs, step.width, step.forms);
  const RoundedInputs shared_inputs(memory + layout.shared_inputs,
                                    activations + int64_t(pairs) * step.width, rows,
                                    step.shared_width, step.shared_forms);
  const int shared_rows = shared_slabs > 0 ? rows : 0;
  auto share = inputs.ask<5>(pairs, warp, kWarps);
  if constexpr (kOneRow) {  // of several rows there is too much to have on its way
    auto shared_share = shared_inputs.ask<1>(shared_rows, kWarps - 1 - warp, kWarps);
    if (kKinds != Kinds::any) walk.prefetch_rest();
    inputs.round(share);
    shared_inputs.round(shared_share);
  } else {
    inputs.round(share);
    auto shared_share = shared_inputs.ask<1>(shared_rows, kWarps - 1 - warp, kWarps);
    shared_inputs.round(shared_share);
  }
  __syncthreads();

  const auto place = [](float* from, int slab) { return from + slab * kDownTiles * kTileOut; };
  const auto put = [&](const SlabCursor& at, const auto& take) {
    const ChosenExperts::Expert expert = chosen.experts[at.slot];
    const auto values_of = [&](int user, int t) {
      const int pair = kOneRow ? at.slot : chosen.pairs[expert.first + user];
      return place(values, pair * slabs + at.slab) + t * kTileOut;
    };
    if constexpr (kOneRow)
      take(OneUser{at.slot}, values_of);
    else
      take(Users{expert.users, [&](int i) { return chosen.pairs[expert.first + i]; }}, values_of);
  };
  const auto outputs_of = [&](int t) {
    return min(kTileOut, max(0, step.hidden - first_output - t * kTileOut));
  };
  if (kKinds != Kinds::any) {
    walk.run([&](const Int4Words(&words)[kDownTiles], const SlabCursor& at) {
      put(at, [&](const auto& users, const auto& values_of) {
        put_int4_values(words, inputs, at.slab, users, values_of);
      });
    });
  } else {
#pragma unroll 1
    for (SlabCursor at(slabs); at.slot < experts; at.advance(slabs))
      put(at, [&](const auto& users, const auto& values_of) {
#pragma unroll 1
        for (int t = 0; t < kDownTiles; ++t)
          put_values<false>(tiles[at.slot * kDownTiles + t], outputs_of(t), inputs, at.slab, users,
                            [&](int user, int) { return values_of(user, t); });
      });
  }
  const auto shared_place = [&](int row, int slab, int t) {
    return place(shared_values, row * shared_slabs + slab) + t * kTileOut;
  };
  const Users all_rows{rows, [](int row) { return row; }};
  shared_walk.run([&](const HalfWords<Fp8Slab>(&words)[1], const SlabCursor& at) {
    put_half_values<Fp8Slab, 4>(words[0], shared_inputs, at.slab, all_rows,
                                [&](int row, int) { return shared_place(row, at.slab, at.slot); });
  });
  if constexpr (kKinds == Kinds::bf16_shared) {
    SlabWalk<Bf16Words, 1, 1> bf16_walk(shared_tiles, kDownTiles, shared_slabs);
    bf16_walk.run([&](const Bf16Words(&words)[1], const SlabCursor& at) {
      put_bf16_values(words[0], shared_inputs, at.slab, all_rows,
                      [&](int row, int) { return shared_place(row, at.slab, at.slot); });
    });
  } else if (!shared_fp8) {
#pragma unroll 1
    for (int i = warp; i < shared_slabs * kDownTiles; i += kWarps) {
      const int slab = i / kDownTiles, t = i % kDownTiles;
      put_values<kKinds == Kinds::usual>(shared_tiles[t], outputs_of(t), shared_inputs, slab,
                                         all_rows,
                                         [&](int row, int) { return shared_place(row, slab, t); });
    }
  }
  __syncthreads();

  // Slabs in order, into the place of the first; then experts in order.
  const int users = pairs + (shared_slabs > 0 ? rows : 0);
  for (int i = thread; i < users * kOutputs; i += kThreads) {
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
  if (shared_slabs > 0)
    sum = fmaf(gates[own_row], place(shared_values, own_row * shared_slabs)[own_output], sum);
  *own = sum;
}

// Bytes of gate and up, as far as formats are known.
int64_t slab_units(const InputForms& forms) { return forms.int4 ? 1 : forms.bf16 ? 4 : 2; }

GateUpShares gate_up_shares(const ExpertsStep& step, int multiprocessors, int most_bytes) {
  const int64_t tiles = step.top_k > 0 ? tile_count(step.width) * step.rows * step.top_k : 0;
  const int64_t shared_tiles = tile_count(step.shared_width);
  const int64_t cost = tiles * slab_units(step.forms);
  const int64_t shared_cost = shared_tiles * slab_units(step.shared_forms);
  const int64_t most = multiprocessors;
  // Every block of the shared expert has equally many of its tiles.
  const int64_t share =
      std::max<int64_t>(1, most * shared_cost / std::max<int64_t>(1, cost + shared_cost));
  const int64_t rounds = std::max<int64_t>(1, shared_tiles / share);
  GateUpShares shares{};
  shares.shared_blocks = int32_t((shared_tiles + rounds - 1) / rounds);
  const int64_t blocks = std::min(tiles, std::max<int64_t>(1, most - shares.shared_blocks));
  shares.blocks = int32_t(shares.shared_blocks + blocks);
  // Room for all tiles of a block at once, if there is.
  const int64_t per_block = blocks > 0 ? (tiles + blocks - 1) / blocks : 0;
  shares.entries = int32_t(std::max<int64_t>(per_block, rounds * step.rows));
  while (shares.entries > step.rows && gate_up_shared(step, shares.entries) > most_bytes)
    --shares.entries;
  return shares;
}

// Outputs of down in tiles of 16, of which a block has one if there are blocks enough.
int down_tiles_of_block(const ExpertsStep& step, int multiprocessors) {
  return tile_count(step.hidden) <= multiprocessors ? 1 : kMostDownTiles;
}

template <bool kOneRow, Kinds kKinds>
void launch_few_rows(const Launcher& launcher, const ExpertsStep& step, int most_bytes,
                     float* activations) {
  const GateUpShares shares = gate_up_shares(step, launcher.multiprocessors, most_bytes);
  const auto gate_up = gate_up_kernel<kOneRow, kKinds>;
  const auto gate_up_bytes = size_t(gate_up_shared(step, shares.entries));
  allow_shared(gate_up, gate_up_bytes);
  launch(launcher, unsigned(shares.blocks), kThreads, gate_up_bytes, gate_up, step, activations,
         shares);
  const int tiles = down_tiles_of_block(step, launcher.multiprocessors);
  const auto down =
      tiles == 1 ? down_kernel<kOneRow, kKinds, 1> : down_kernel<kOneRow, kKinds, kMostDownTiles>;
  const auto down_bytes = size_t(DownLayout(step, tiles).end);
  allow_shared(down, down_bytes);
  launch(launcher, unsigned((tile_count(step.hidden) + tiles - 1) / tiles), kThreads, down_bytes,
         down, step, activations);
}

// As published files have them, with the shared expert as it is, or the hybrid's, or none.
Kinds kinds_of(const ExpertsStep& step) {
  if (step.top_k == 0 || !step.forms.int4) return Kinds::any;
  if (step.shared_width == 0 || step.shared_forms.int4_or_fp8) return Kinds::usual;
  const bool whole = step.hidden % kSlabIn == 0 && step.shared_width % kSlabIn == 0;
  return step.shared_forms.bf16 && whole ? Kinds::bf16_shared : Kinds::any;
}

template <bool kOneRow>
void launch_kinds(const Launcher& launcher, const ExpertsStep& step, int most_bytes,
                  float* activations) {
  switch (kinds_of(step)) {
    case Kinds::usual:
      return launch_few_rows<kOneRow, Kinds::usual>(launcher, step, most_bytes, activations);
    case Kinds::bf16_shared:
      return launch_few_rows<kOneRow, Kinds::bf16_shared>(launcher, step, most_bytes, activations);
    case Kinds::any:
      return launch_few_rows<kOneRow, Kinds::any>(launcher, step, most_bytes, activations);
  }
}

}  // namespace

void run_few_rows(const Launcher& launcher, const ExpertsStep& step, float* activations) {
  constexpr int kDeclared = 16 << 10;  // in the kernels
  const int most = launcher.shared_bytes - kDeclared;
  ExpertsStep part = step;
  const auto fits = [&] {
    return std::max(gate_up_shared(part, part.rows), DownLayout(part, kMostDownTiles).end) <= most;
  };
  part.rows = std::min(step.rows, int(kFewRows));
  while (part.rows > 1 && !fits()) part.rows = (part.rows + 1) / 2;
  check(fits(), "experts: a row needs more shared memory than ", most, " bytes");
  const int at_once = part.rows;
  for (int first = 0; first < step.rows; first += at_once) {
    part = step;
    part.rows = std::min(at_once, step.rows - first);
    part.x += int64_t(first) * step.hidden;
    part.out += int64_t(first) * step.hidden;
    part.ids += int64_t(first) * step.top_k;
    part.weights += int64_t(first) * step.top_k;
    if (step.shared_width > 0) part.shared_gate += first;
    const auto run = part.rows == 1 ? launch_kinds<true> : launch_kinds<false>;
    run(launcher, part, most, activations);
  }
}

}  // namespace slip
