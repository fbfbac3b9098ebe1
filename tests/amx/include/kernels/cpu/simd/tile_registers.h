// Stands in for the header of that name in src/: AMX's tile registers as plain arrays, so that the
// loops above them are tested on processors without AMX. What a processor refuses ends the program.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace slip {
namespace {

constexpr int kTileCount = 8, kMostTileRows = 16, kTileRowBytes = 64;

struct EmulatedTile {
  int rows;
  uint8_t bytes[kMostTileRows][kTileRowBytes];
};
thread_local bool tiles_have_shapes = false;
thread_local EmulatedTile emulated_tiles[kTileCount];

inline EmulatedTile& emulated_tile(int tile) {
  check(tiles_have_shapes, "tiles have no shapes");
  return emulated_tiles[tile];
}

class TileShapes {
 public:
  template <class Rows>
  explicit TileShapes(const Rows& rows) {
    for (int tile = 0; tile < kTileCount; ++tile) {
      emulated_tiles[tile] = {.rows = rows(tile), .bytes = {}};
      check(emulated_tiles[tile].rows >= 1 && emulated_tiles[tile].rows <= kMostTileRows, "tile ",
            tile, " of ", emulated_tiles[tile].rows, " rows");
    }
    tiles_have_shapes = true;
  }
  ~TileShapes() { tiles_have_shapes = false; }
  TileShapes(const TileShapes&) = delete;
  TileShapes& operator=(const TileShapes&) = delete;
};

template <int kTile>
inline void clear_tile() {
  std::memset(emulated_tile(kTile).bytes, 0, sizeof(EmulatedTile::bytes));
}
template <int kTile>
inline void load_tile(const void* rows, int64_t stride) {
  EmulatedTile& tile = emulated_tile(kTile);
  for (int r = 0; r < tile.rows; ++r)
    std::memcpy(tile.bytes[r], static_cast<const uint8_t*>(rows) + r * stride, kTileRowBytes);
}
template <int kTile>
inline void store_tile(void* rows, int64_t stride) {
  const EmulatedTile& tile = emulated_tile(kTile);
  for (int r = 0; r < tile.rows; ++r)
    std::memcpy(static_cast<uint8_t*>(rows) + r * stride, tile.bytes[r], kTileRowBytes);
}

template <int kSums, int kInputs, int kWeights, bool kSignedWeights>
inline void multiply_tiles() {
  static_assert(kSums != kInputs && kSums != kWeights && kInputs != kWeights);
  EmulatedTile& sums = emulated_tile(kSums);
  const EmulatedTile &inputs = emulated_tile(kInputs), &weights = emulated_tile(kWeights);
  check(sums.rows == inputs.rows && weights.rows == kTileRowBytes / 4,
        "tiles whose shapes do not match");
  for (int r = 0; r < sums.rows; ++r) {
    int32_t row[kTileRowBytes / 4];
    std::memcpy(row, sums.bytes[r], sizeof(row));
    for (int quad = 0; quad < kTileRowBytes / 4; ++quad) {
      for (int lane = 0; lane < kTileRowBytes / 4; ++lane) {
        for (int i = 0; i < 4; ++i) {
          const uint8_t weight = weights.bytes[quad][4 * lane + i];
          row[lane] += int8_t(inputs.bytes[r][4 * quad + i]) *
                       (kSignedWeights ? int(int8_t(weight)) : int(weight));
        }
      }
    }
    std::memcpy(sums.bytes[r], row, sizeof(row));
  }
}

}  // namespace
}  // namespace slip
