// Gate and up of all chosen experts and the shared one.
#pragma once

#include <algorithm>

#include "kernels/cuda/chosen_experts.cuh"
#include "kernels/cuda/slab_walk.cuh"

namespace slip {

static_assert(kWalkThreads >= kMostPairs);

// What a block works on at a time: tiles of 16 outputs of gate and up.
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

// How blocks share the work: the first ones have the shared expert.
struct GateUpShares {
  int32_t blocks, shared_blocks;
  int32_t entries;  // users of a batch's tiles
};

// Slabs of the input that a warp asks for at a time, to round them.
inline constexpr int kGateUpAtOnce = 2;

inline int gate_up_bytes(const ExpertsStep& step, int entries) {
  const int slabs = int(slab_count(step.hidden));
  const auto bytes = [&](const InputForms& forms) {
    return rounded_inputs_bytes(step.rows, slabs, forms);
  };
  return std::max(step.top_k > 0 ? bytes(step.forms) : 0,
                  step.shared_width > 0 ? bytes(step.shared_forms) : 0) +
         std::max(entries * 2 * slabs * kTileOut * int(sizeof(float)),  // values, or, before that,
                  step.rows == 1 ? kWalkWarps * kGateUpAtOnce * kRawSlabBytes : 0);  // raw inputs
}

// A block's share of the tiles of all chosen experts, or of the shared one: every `blocks`th.
struct GateUpPart {
  bool is_shared;
  int block, blocks, width, tiles;

  __device__ GateUpPart(const ExpertsStep& step, const GateUpShares& shares) {
    is_shared = int(blockIdx.x) < shares.shared_blocks;
    block = int(blockIdx.x) - (is_shared ? 0 : shares.shared_blocks);
    blocks = is_shared ? shares.shared_blocks : shares.blocks - shares.shared_blocks;
    width = is_shared ? step.shared_width : step.width;
    tiles = (width + kTileOut - 1) / kTileOut;
  }

  // Before the choice is known: the shared expert. And the table has left the caches since the last
  // step.
  __device__ __forceinline__ void prefetch(const ExpertsStep& step) const {
    constexpr int kLineWeights = 128 / sizeof(ExpertWeight);  // in a line of cache
    if (is_shared) {
#pragma unroll 1
      for (int tile = block; tile < tiles; tile += blocks) {
        for (const ExpertWeight& weight : {step.shared.gate, step.shared.up}) {
          const WeightTile of = weight_tile(weight, tile, step.hidden);
          prefetch_bytes(of.values, tile_bytes(of, slabs_of(step.hidden)), int(threadIdx.x),
                         kWalkThreads);
        }
      }
    } else if (block == 0 && step.weights_of[kGate].stride == 0) {
#pragma unroll 1
      for (int i = int(threadIdx.x); i * kLineWeights < kExpertMatrices * step.experts;
           i += kWalkThreads)
        prefetch_line(step.table + i * kLineWeights);
    }
  }
};

// The tile that a lane finds of those that a block has at a time: of which expert, counted as a row
// has chosen them, and which of the expert's.
struct TilePlace {
  bool exists;
  int expert, tile;

  __device__ TilePlace(const GateUpPart& part, int done, int experts) {
    const int index = part.block + (done + int(threadIdx.x) % kWarp) * part.blocks;
    exists = index < part.tiles * experts;
    expert = exists && !part.is_shared ? index / part.tiles : 0;
    tile = index - expert * part.tiles;
  }
};

enum class Whose : uint8_t { experts, shared, either };

// The first warp knows what was chosen.
template <bool kOneRow, SlabKind kKind, Whose kWhose>
__device__ __forceinline__ void gate_up(const ExpertsStep& step, const GateUpShares& shares,
                                        const GateUpPart& part, const TilePlace& first_place,
                                        const ChosenExperts& chosen, std::byte* memory,
                                        GateUpBatch& batch, float* activations) {
  const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
  const bool is_shared = kWhose == Whose::either ? part.is_shared : kWhose == Whose::shared;
  const int width = is_shared ? step.shared_width : step.width;
  const int slabs = slabs_of(step.hidden);
  const InputForms& forms = is_shared ? step.shared_forms : step.forms;
  const RoundedInputs<kKind> inputs(memory, is_shared ? step.shared_x : step.x, step.rows,
                                    step.hidden, forms);
  // [entries][gate, up][slabs][16 outputs]
  auto* values = reinterpret_cast<float*>(memory + rounded_inputs_bytes(step.rows, slabs, forms));
  const auto users_of = [&](const GateUpBatch::Slot& slot) {
    if constexpr (kOneRow)
      return OneUser{0};
    else
      return Users{slot.users, [&, first = slot.first_user](int i) {
                     return is_shared ? i : int(chosen.pairs[first + i].row);
                   }};
  };

  // How many are known after a barrier, but to the first warp.
  const auto experts = [&] { return is_shared ? 1 : kOneRow ? step.top_k : chosen.count; };
  // One warp finds the tiles, while the others round, those excepted that choose. Of one row, what
  // the first warp runs through comes first: it is waited for longest.
  const auto round_inputs = [&](int choosing) {
    if (warp < choosing) return;
    auto* raw = reinterpret_cast<float4*>(values) + warp * kGateUpAtOnce * kWarp;
    inputs.template round<kGateUpAtOnce, kOneRow ? 1 : kGateUpAtOnce>(
        step.rows, warp - choosing, kWalkWarps - choosing, raw, [] {});
  };
  if constexpr (!kOneRow) round_inputs(is_shared ? 1 : ChosenExperts::choosing_warps(step));
#pragma unroll 1
  for (int done = 0;;) {
    if (warp == 0) {
      const auto [exists, expert, tile] =
          kOneRow && done == 0 ? first_place : TilePlace(part, done, experts());
      int id = -1, first_user = 0, users = exists ? step.rows : 0;
      if (exists && !is_shared) {
        const ChosenExperts::Expert found = chosen.experts[expert];
        id = found.id;
        first_user = found.first;
        users = found.users;
      }
      int entries = users;  // up to and with this lane's
      if constexpr (kOneRow) {
        entries = lane + 1;
      } else {
#pragma unroll
        for (int distance = 1; distance < kWarp; distance *= 2) {
          const int more = __shfl_up_sync(~0u, entries, distance);
          if (lane >= distance) entries += more;
        }
      }
      const bool fits = exists && entries <= shares.entries;
      if (fits) {
        batch.slots[lane] = {tile, entries - users, first_user, users};
        const ExpertWeight gate = is_shared ? step.shared.gate : weight_of(step, kGate, id);
        const ExpertWeight up = is_shared ? step.shared.up : weight_of(step, kUp, id);
        batch.tiles[lane][0] = tile_of<kKind>(gate, tile, step.hidden);
        batch.tiles[lane][1] = tile_of<kKind>(up, tile, step.hidden);
      }
      const uint32_t slots = __ballot_sync(~0u, fits);
      if (lane == 0) batch.count = __popc(slots);
    } else if (kOneRow && done == 0) {
      round_inputs(1);
    }
    __syncthreads();
    const int count = batch.count;
    if (count == 0) return;

    const auto put = [&](const SlabCursor& at, const auto& take) {
      const GateUpBatch::Slot& slot = batch.slots[at.slot];
      take(slot, users_of(slot), [&](int user, int which) {
        return values + (((slot.first_entry + user) * 2 + which) * slabs + at.slab) * kTileOut;
      });
    };
    if constexpr (kKind != SlabKind::any) {
      // Gate and up of int4 side by side, others one after the other: they are larger.
      constexpr int kTiles = kKind == SlabKind::int4 ? 2 : 1;
      constexpr int kAhead = kKind == SlabKind::f16 || (kKind == SlabKind::fp8 && !kOneRow) ? 1 : 2;
      SlabWalk<SlabWords<kKind>, kTiles, kAhead> walk(&batch.tiles[0][0], count * 2 / kTiles,
                                                      slabs);
      walk.run([&](const SlabWords<kKind>(&words)[kTiles], const SlabCursor& at) {
        put({at.slot * kTiles / 2, at.slab},
            [&](const auto&, const auto& users, const auto& values_of) {
              put_slab(words, inputs, at.slab, users, [&](int user, int t) {
                return values_of(user, kTiles == 2 ? t : at.slot % 2);
              });
            });
      });
    } else {
#pragma unroll 1
      for (SlabCursor at(slabs); at.slot < count; at.advance(slabs))
        put(at, [&](const GateUpBatch::Slot& slot, const auto& users, const auto& values_of) {
          const int outputs = min(kTileOut, width - slot.tile * kTileOut);
#pragma unroll 1
          for (int which = 0; which < 2; ++which)
            put_values(batch.tiles[at.slot][which], outputs, inputs, at.slab, users,
                       [&](int user, int) { return values_of(user, which); });
        });
    }
    __syncthreads();

    // One warp, one user: half of it sums gate, the other half up.
    float* results =
        is_shared ? activations + int64_t(step.rows) * step.top_k * step.width : activations;
    const GateUpBatch::Slot& last = batch.slots[count - 1];
#pragma unroll 1
    for (int entry = warp, at = 0; entry < last.first_entry + last.users; entry += kWalkWarps) {
#pragma unroll 1
      while (entry >= batch.slots[at].first_entry + batch.slots[at].users) ++at;
      const GateUpBatch::Slot& slot = batch.slots[at];
      const float* column =
          values + (entry * 2 + lane / kTileOut) * slabs * kTileOut + lane % kTileOut;
      const float sum = sum_of_slabs<kTileOut>(column, slabs);
      const float up = __shfl_down_sync(~0u, sum, kTileOut);
      const int user = entry - slot.first_entry;
      const int row = is_shared ? user : chosen.pairs[slot.first_user + user].index;
      const int output = slot.tile * kTileOut + lane;
      if (lane < kTileOut && output < width)
        results[int64_t(row) * width + output] = activated(sum, step.gelu) * up;
    }
    done += count;
    if (part.block + done * part.blocks >= part.tiles * experts()) return;
    __syncthreads();
  }
}

// activations = silu(gate x) * (up x), or GELU.
template <bool kOneRow, SlabKind kExpertsKind, SlabKind kSharedKind>
__global__ void __launch_bounds__(kWalkThreads, 1)
    gate_up_kernel(const __grid_constant__ ExpertsStep step, float* activations,
                   const __grid_constant__ GateUpShares shares) {
  std::byte* const memory = launch_memory;
  __shared__ ChosenExperts chosen;
  __shared__ GateUpBatch batch;
  const GateUpPart part(step, shares);
  // Of one row, known before the choice is: all of its experts are different.
  const TilePlace place(part, 0, part.is_shared ? 1 : step.top_k);
  part.prefetch(step);
  // All blocks wait before they let the next kernel begin: it reads the choice, too. If it is made
  // here, the first block that makes it leaves it there before.
  wait_for_inputs();
  const bool chooses = step.logits != nullptr && !part.is_shared;
  const bool leaves = chooses && part.block == 0;
  if (!leaves) let_next_begin();
  if (chooses) {
    chosen.choose<kOneRow>(step, leaves);
  } else if (!part.is_shared) {
    chosen.find<kOneRow>(step);
    if constexpr (!kOneRow) __syncthreads();
  }
  if constexpr (kExpertsKind == kSharedKind)
    gate_up<kOneRow, kExpertsKind, Whose::either>(step, shares, part, place, chosen, memory, batch,
                                                  activations);
  else if (part.is_shared) [[unlikely]]  // most blocks have others
    gate_up<kOneRow, kSharedKind, Whose::shared>(step, shares, part, place, chosen, memory, batch,
                                                 activations);
  else
    gate_up<kOneRow, kExpertsKind, Whose::experts>(step, shares, part, place, chosen, memory, batch,
                                                   activations);
}

}  // namespace slip
