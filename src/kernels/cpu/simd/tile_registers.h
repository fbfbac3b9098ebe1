// The eight tile registers of AMX, by number; each here is at most 16 rows of 64 bytes. All of
// AMX's assembly is in this file.
#pragma once

#include <cstdint>

namespace slip {
namespace {

// What the registers hold until they are released, which also makes them cheap to switch between
// threads again.
class TileShapes {
 public:
  // Registers below kTiles have 64 bytes per row; `rows(tile)` says how many rows.
  template <class Rows>
  explicit TileShapes(const Rows& rows) {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } shapes;
    for (int tile = 0; tile < kTiles; ++tile) {
      shapes.row_bytes[tile] = 64;
      shapes.rows[tile] = rows(tile);
    }
    asm volatile("ldtilecfg %0" ::"m"(shapes) : "memory");
  }
  ~TileShapes() { asm volatile("tilerelease" ::: "memory"); }
  TileShapes(const TileShapes&) = delete;
  TileShapes& operator=(const TileShapes&) = delete;

 private:
  static constexpr int kTiles = 8;
};

template <int kTile>
inline void clear_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kTile>
inline void load_tile(const void* rows, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
inline void store_tile(void* rows, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(rows), "r"(stride), "i"(kTile) : "memory");
}

// sums[r][lane] += the products of row r's 64 signed bytes with the lane's bytes in weights, of
// which each row holds four per lane.
template <int kSums, int kInputs, int kWeights, bool kSignedWeights>
inline void multiply_tiles() {
  if constexpr (kSignedWeights) {
    asm volatile("tdpbssd %%tmm%c0, %%tmm%c1, %%tmm%c2" ::"i"(kWeights), "i"(kInputs), "i"(kSums));
  } else {
    asm volatile("tdpbsud %%tmm%c0, %%tmm%c1, %%tmm%c2" ::"i"(kWeights), "i"(kInputs), "i"(kSums));
  }
}

}  // namespace
}  // namespace slip
