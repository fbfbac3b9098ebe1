// How a launch of few rows shares the memory of a multiprocessor. One block each, and never two:
// rings and registers are large enough to see to that. Blocks of half the size would let the next
// kernel begin earlier, but not on all multiprocessors alike.
#pragma once

#include <algorithm>
#include <span>

#include "kernels/cuda/int4_runs.cuh"
#include "kernels/cuda/slab_stream.cuh"

namespace slip::gemv {

inline constexpr int kDeclaredBytes = 3072;  // of shared memory, in the kernels themselves

// Slots of a ring that kernels are made for. The longest is wanted: a GPU has its bandwidth only
// while enough of it is on its way, and what has arrived when the input does need not be waited
// for.
inline constexpr int kByteRings[] = {4, 2};

// Tiles of a team that had better wait for the same barrier where only a shorter ring leaves room
// for them: two, of a single row four.
inline constexpr int kFewTiles = 2, kFewTilesOfOneRow = 4;

// What is asked for behind a ring arrives behind it. A row that is normed follows a kernel that
// ends late, so that its ring is still on its way then, and is waited for longest.
constexpr int early_slots_before_norm(int slots) { return (3 * slots + 4) / 8; }

struct Plan {
  int rows;  // of a block
  int bytes;
  int blocks;  // of a part
};

inline FewRows few_rows_work(const LinearInput& input, const LinearJobs& slabs) {
  FewRows work{};
  work.input = input;
  work.slabs = slabs;
  work.slabs_per_tile = int32_t(slab_count(input.in));
  const int parts = linear_parts(input.in);
  work.slabs_per_part = (work.slabs_per_tile + parts - 1) / parts;
  return work;
}

// Of shared memory that int4 reads of `slabs` slabs, and behind them (int4_runs.cuh): nobody writes
// there while products are made.
inline int end_of_integers(const FewRows& work, int slabs, int rows) {
  const int with_behind = slabs + kSlabsBehind;
  return std::max(work.inputs_at + with_behind * slab_input_bytes(rows),
                  work.units_at + with_behind * rows * int(sizeof(IntegerSlab)));
}

// Places what a block has in shared memory, behind `ring_bytes` of rings; returns how much it is.
inline int place_rows(FewRows& work, bool int4, int ring_bytes, int rows, int at_once,
                      int tiles_per_team) {
  const int sets = at_once < tiles_per_team ? 2 : 1;
  work.rows_per_block = rows;
  work.tiles_at_once = at_once;
  work.inputs_at = ring_bytes;
  work.units_at = work.inputs_at + work.slabs_per_part * slab_input_bytes(rows);
  work.partials_at = int4 ? end_of_integers(work, work.slabs_per_part, rows)
                          : work.units_at + work.slabs_per_part * rows * int(sizeof(float));
  return work.partials_at +
         sets * kTeams * at_once * kWarps * rows * kPartialStride * int(sizeof(float));
}

// Also sets what the plan says in `work`.
inline Plan plan_few_rows(const Launcher& launcher, FewRows& work, bool int4) {
  const int wanted = std::max(launcher.multiprocessors / linear_parts(work.input.in), 1);
  const int blocks = std::min(work.slabs.units, wanted);
  work.teams = kTeams * blocks;
  const int tiles_per_team = (work.slabs.units + work.teams - 1) / work.teams;
  const int room = launcher.shared_bytes - kDeclaredBytes;
  for (int rows = int(work.input.rows);; rows = (rows + 1) / 2) {
    const int most = std::min(std::max(kMostPlaces / rows, 1), tiles_per_team);
    const int few = std::min(rows == 1 ? kFewTilesOfOneRow : kFewTiles, most);
    const int length = piece_length(work.slabs_per_part, rows);
    const int slot_bytes = int4 ? int4_slot_bytes(length) : kByteSlot;
    const std::span<const int> rings =
        int4 ? std::span<const int>(int4_rings(length)) : std::span<const int>(kByteRings);
    for (const int slots : rings) {
      work.slots = slots;
      for (int at_once = most; at_once >= (slots == rings.back() ? 1 : few); --at_once) {
        const int ring_bytes = kTeams * kWarps * slots * slot_bytes;
        const int bytes = place_rows(work, int4, ring_bytes, rows, at_once, tiles_per_team);
        if (bytes <= room) return {.rows = rows, .bytes = bytes, .blocks = blocks};
      }
    }
    check(rows > 1, "linear: ", work.input.in, " inputs do not fit into ", room,
          " bytes of shared memory");
  }
}

}  // namespace slip::gemv
