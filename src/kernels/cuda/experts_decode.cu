// Mixture of experts, few rows: two kernels that read every chosen expert once, whoever chose it.
//
// Both are bound by the instructions around each slab as much as by its bytes, so little is decided
// there: a block finds its tiles and rounds its activations once, and warps then walk over slabs,
// the next ones always on their way to registers.
#include <algorithm>
#include <cmath>

#include "kernels/cuda/experts.h"
#include "kernels/cuda/experts_down.cuh"
#include "kernels/cuda/experts_gate_up.cuh"

namespace slip {
namespace {

// Bytes of gate and up, as far as formats are known.
int64_t slab_units(const InputForms& forms) { return forms.int4 ? 1 : forms.f16 ? 4 : 2; }

// Experts that a step's rows meet, if they choose at random.
double expected_experts(const ExpertsStep& step) {
  if (step.top_k == 0) return 0;
  const double experts = step.experts;
  return experts * (1 - std::pow(1 - step.top_k / experts, step.rows));
}

GateUpShares gate_up_shares(const ExpertsStep& step, int multiprocessors, int most_bytes) {
  const int64_t pair_tiles = step.top_k > 0 ? tile_count(step.width) * step.rows * step.top_k : 0;
  const int64_t shared_tiles = tile_count(step.shared_width);
  const auto fits = [&](int64_t entries) {
    return gate_up_bytes(step, int(entries)) <= most_bytes;
  };
  // In thirds of what a slab takes. The shared expert's tiles meet all rows: for every kIntegerRows
  // beyond the first a slab takes another third.
  const double row_cost = 2 + (step.rows + kIntegerRows - 1) / kIntegerRows;
  const double cost =
      3 * expected_experts(step) * double(tile_count(step.width)) * double(slab_units(step.forms));
  const double shared_cost =
      row_cost * double(shared_tiles) * double(slab_units(step.shared_forms));
  const int64_t most = multiprocessors;
  // Every block of the shared expert has equally many of its tiles; of several batches, none is
  // nearly empty.
  const auto share =
      std::max(int64_t{1}, int64_t(double(most) * shared_cost / std::max(1.0, cost + shared_cost)));
  int64_t rounds = std::max<int64_t>(1, shared_tiles / share), room = rounds;
  while (room > 1 && !fits(room * step.rows)) --room;
  if (step.top_k > 0)
    rounds = std::min(rounds, room * std::max<int64_t>(1, (2 * rounds + room) / (2 * room)));
  GateUpShares shares{};
  shares.shared_blocks = int32_t((shared_tiles + rounds - 1) / rounds);
  const int64_t blocks = std::min(pair_tiles, std::max<int64_t>(1, most - shares.shared_blocks));
  shares.blocks = int32_t(shares.shared_blocks + blocks);
  // Room for all tiles of a block at once, if there is.
  const int64_t per_block = blocks > 0 ? (pair_tiles + blocks - 1) / blocks : 0;
  shares.entries = int32_t(std::max<int64_t>(per_block, rounds * step.rows));
  while (shares.entries > step.rows && !fits(shares.entries)) --shares.entries;
  return shares;
}

// Outputs of down in tiles of 16, of which a block has one if there are blocks enough.
int down_tiles_of_block(const ExpertsStep& step, int multiprocessors) {
  return tile_count(step.hidden) <= multiprocessors ? 1 : kMostDownTiles;
}

template <bool kOneRow, SlabKind kExpertsKind, SlabKind kSharedKind>
void launch_gate_up(const Launcher& launcher, const ExpertsStep& step, int most_bytes,
                    float* activations) {
  const GateUpShares shares = gate_up_shares(step, launcher.multiprocessors, most_bytes);
  const auto kernel = gate_up_kernel<kOneRow, kExpertsKind, kSharedKind>;
  const auto bytes = size_t(gate_up_bytes(step, shares.entries));
  allow_shared(kernel, bytes);
  launch(launcher, unsigned(shares.blocks), kWalkThreads, bytes, kernel, step, activations, shares);
}

template <bool kOneRow, SlabKind kExpertsKind, SlabKind kSharedKind>
void launch_down(const Launcher& launcher, const ExpertsStep& step, float* activations) {
  const int tiles = down_tiles_of_block(step, launcher.multiprocessors);
  const auto kernel = tiles == 1 ? down_kernel<kOneRow, kExpertsKind, kSharedKind, 1>
                                 : down_kernel<kOneRow, kExpertsKind, kSharedKind, kMostDownTiles>;
  const auto bytes = size_t(DownLayout(step, tiles).end);
  allow_shared(kernel, bytes);
  launch(launcher, unsigned((tile_count(step.hidden) + tiles - 1) / tiles), kWalkThreads, bytes,
         kernel, step, activations);
}

// As published files have them, with the shared expert as it is, or the hybrid's, or none; all in
// FP8, or in 16 bits. INT4 experts whose width is an odd number of half slabs have groups of 64 in
// down.
template <bool kOneRow>
void launch_kinds(const Launcher& launcher, const ExpertsStep& step, int most_bytes,
                  float* activations) {
  using enum SlabKind;
  const bool suits = step.top_k > 0 &&
                     rows_of_quads(step.hidden, {step.x, step.shared_x, activations}) &&
                     step.width % kQuad == 0 && step.shared_width % kQuad == 0;
  const bool alone = step.shared_width == 0;

  const InputForms &forms = step.forms, &shared = step.shared_forms;
  const bool all_fp8 = suits && forms.fp8 && (alone || shared.fp8);
  const bool all_f16 = suits && forms.f16 && (alone || shared.f16);
  const auto gate_up = all_fp8                 ? launch_gate_up<kOneRow, fp8, fp8>
                       : all_f16               ? launch_gate_up<kOneRow, f16, f16>
                       : !suits || !forms.int4 ? launch_gate_up<kOneRow, any, any>
                       : alone || shared.int4  ? launch_gate_up<kOneRow, int4, int4>
                       : shared.fp8            ? launch_gate_up<kOneRow, int4, fp8>
                       : shared.f16            ? launch_gate_up<kOneRow, int4, f16>
                                               : launch_gate_up<kOneRow, any, any>;
  gate_up(launcher, step, most_bytes, activations);

  const InputForms &down_forms = step.down_forms, &shared_down = step.shared_down_forms;
  const bool all_down_fp8 = suits && down_forms.fp8 && (alone || shared_down.fp8);
  const bool all_down_f16 = suits && down_forms.f16 && (alone || shared_down.f16);
  const auto down = all_down_fp8   ? launch_down<kOneRow, fp8, fp8>
                    : all_down_f16 ? launch_down<kOneRow, f16, f16>
                    : suits && down_forms.int4_64 && (alone || shared_down.int4_64)
                        ? launch_down<kOneRow, int4_64, int4_64>
                    : !suits || !down_forms.int4 ? launch_down<kOneRow, any, any>
                    : alone || shared_down.int4  ? launch_down<kOneRow, int4, int4>
                    : shared_down.fp8            ? launch_down<kOneRow, int4, fp8>
                    : shared_down.f16            ? launch_down<kOneRow, int4, f16>
                                                 : launch_down<kOneRow, any, any>;
  down(launcher, step, activations);
}

}  // namespace

void run_few_rows(const Launcher& launcher, const ExpertsStep& step, float* activations) {
  constexpr int kDeclared = 9 << 10;  // in the kernels; small GPUs need the rest for three rows
  static_assert(sizeof(ChosenExperts) + sizeof(GateUpBatch) + 256 <= kDeclared);
  const int most = launcher.shared_bytes - kDeclared;
  ExpertsStep part = step;
  const auto fits = [&] {
    return std::max(gate_up_bytes(part, part.rows), DownLayout(part, kMostDownTiles).end) <= most;
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
    if (step.logits) part.logits += int64_t(first) * step.experts;
    part.ids += int64_t(first) * step.top_k;
    part.weights += int64_t(first) * step.top_k;
    part.shared_x += int64_t(first) * step.hidden;
    if (step.shared_gate) part.shared_gate += first;
    if (step.shared_out) part.shared_out += int64_t(first) * step.hidden;
    const auto run = part.rows == 1 ? launch_kinds<true> : launch_kinds<false>;
    run(launcher, part, most, activations);
  }
}

}  // namespace slip
