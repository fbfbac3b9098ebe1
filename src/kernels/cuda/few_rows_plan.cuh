// How a launch of few rows shares the memory of a multiprocessor. One block each, and never two:
// the rings are large enough to see to that. Blocks of half the size would let the next kernel
// begin earlier, but not on all multiprocessors alike.
#pragma once

#include <algorithm>
#include <span>

#include "kernels/cuda/int4_products.cuh"
#include "kernels/cuda/slab_stream.cuh"

namespace slip::gemv {

inline constexpr int kDeclaredBytes = 3072;  // of shared memory, in the kernels themselves

// Slots of a ring that kernels are made for. The longest is wanted: a GPU has its bandwidth only
// while enough of it is on its way.
inline constexpr int kInt4Rings[] = {8, 5, 3};
inline constexpr int kByteRings[] = {4, 2};

// Tiles of a team that had better wait for the same barrier where only a shorter ring leaves room
// for them: two, of a single row four.
inline constexpr int kFewTiles = 2, kFewTilesOfOneRow = 4;

// What is asked for behind a ring arrives behind it. A row that is normed follows a kernel that
// ends late, so that its ring is still on its way then, and is waited for longest.
constexpr int early_slots_before_norm(int slots) { return (3 * slots + 4) / 8; }

struct Plan {
  int rows;  // of a block
  int slots;
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

// Also sets what the plan says in `work`.
inline Plan plan_few_rows(const Launcher& launcher, FewRows& work, bool int4,
                          std::span<const int> rings) {
  const int slot_bytes = int4 ? kInt4Slot : kByteSlot;
  const int unit_bytes = int(int4 ? sizeof(IntegerSlab) : sizeof(float));
  const int wanted = std::max(launcher.multiprocessors / linear_parts(work.input.in), 1);
  const int blocks = std::min(work.slabs.units, wanted);
  work.teams = kTeams * blocks;
  const int tiles_per_team = (work.slabs.units + work.teams - 1) / work.teams;
  const auto shared_bytes = [&](int slots, int rows, int at_once) {
    work.rows_per_block = rows;
    work.tiles_at_once = at_once;
    const int sets = at_once < tiles_per_team ? 2 : 1;
    work.inputs_at = kTeams * kWarps * slots * slot_bytes;
    work.units_at = work.inputs_at + work.slabs_per_part * slab_input_bytes(rows);
    work.partials_at = work.units_at + work.slabs_per_part * rows * unit_bytes;
    return work.partials_at +
           sets * kTeams * at_once * kWarps * rows * kPartialStride * int(sizeof(float));
  };
  const int room = launcher.shared_bytes - kDeclaredBytes;
  for (int rows = int(work.input.rows);; rows = (rows + 1) / 2) {
    const int most = std::min(std::max(kMostPlaces / rows, 1), tiles_per_team);
    for (const int slots : rings) {
      const int wanted_tiles = rows == 1 ? kFewTilesOfOneRow : kFewTiles;
      const int fewest = slots == rings.back() ? 1 : std::min(wanted_tiles, most);
      for (int at_once = most; at_once >= fewest; --at_once)
        if (const int bytes = shared_bytes(slots, rows, at_once); bytes <= room)
          return {.rows = rows, .slots = slots, .bytes = bytes, .blocks = blocks};
    }
    check(rows > 1, "linear: ", work.input.in, " inputs do not fit into ", room,
          " bytes of shared memory");
  }
}

}  // namespace slip::gemv
