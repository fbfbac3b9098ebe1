#include "kernels/cpu/simd/tiles_amx.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/simd/dot_avx512.h"
#include "kernels/cpu/simd/tile_registers.h"
// Uses the vectors above.
#include "kernels/cpu/simd/loops_linear.h"

namespace slip {

extern const Loops kLoops_avx512[2];

namespace {

// Fewer rows are AVX-512's: they wait for weights, not for products.
constexpr int64_t kFewestRows = 9;

// Rows and blocks of outputs that are computed together, group by group: inputs of a group stay in
// the first-level cache for all blocks, a group's unpacked weights are used for all rows, and
// totals wait in the second-level cache.
constexpr int64_t kPanelRows = 64;
constexpr int64_t kPanelBlocks = 32;

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileInputs = 64;
constexpr int64_t kTileBytes = 1024;
constexpr int64_t kMostSteps = 2;  // tiles of inputs in a group

template <int kBytes>
struct Panel {
  alignas(64) int8_t inputs[kMostSteps][kBytes][kPanelRows * kTileInputs];
  alignas(64) uint8_t weights[kMostSteps][kTileBytes];
  alignas(64) int32_t sums[2][kBytes][kTileRows * kLanes];
  int32_t offsets[kPanelRows];
  float scales[kPanelRows];
  alignas(64) float totals[kPanelBlocks][kPanelRows * kLanes];
};

// The first `bytes` of 64, a multiple of four or more than there are; zeros behind them.
inline __m512i load_codes(const int8_t* codes, int64_t bytes) {
  if (bytes >= 64) return _mm512_loadu_si512(codes);
  const uint32_t quads = bytes > 0 ? (1u << (bytes / 4)) - 1 : 0;
  return _mm512_maskz_loadu_epi32(__mmask16(quads), codes);
}

// A row's next 64 inputs, of which `valid` are there, as rows of tiles: high bytes and low ones.
template <int kBytes>
inline void spread_inputs(const int8_t* codes, int64_t valid, int8_t* high, int8_t* low) {
  const int64_t bytes = (valid + 3) / 4 * 4 * kBytes;
  const __m512i first = load_codes(codes, bytes);
  if constexpr (kBytes == 1) {
    _mm512_store_si512(high, first);
  } else {
    const __m512i second = load_codes(codes + 64, bytes - 64);
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    _mm512_store_si512(high, _mm512_permutex2var_epi32(first, even, second));
    _mm512_store_si512(low, _mm512_permutex2var_epi32(first, odd, second));
  }
}

// Groups of inputs that share a scale, as the two formats have them.
struct Int4Tiles {
  static constexpr bool kSignedWeights = false;
  static int64_t group(const LinearTile& tile) { return tile.group; }
  static int64_t group_bytes(int64_t group) { return 2 * kLanes + group / 8 * 64; }
  static int64_t block_bytes(const LinearTile& tile) {
    return tile.in / tile.group * group_bytes(tile.group);
  }
  // Codes are stored plus eight.
  static int32_t offset(int32_t sum) { return -8 * sum; }
  static F32x16 group_scales(const std::byte* weight) {
    return load_f16(reinterpret_cast<const uint16_t*>(weight));
  }
  static F32x16 finish(F32x16 total, const LinearTile&, int64_t) { return total; }

  static const uint8_t* step(const std::byte* weight, int64_t first, int64_t, uint8_t* unpacked) {
    const __m512i nibble = _mm512_set1_epi8(15);
    const std::byte* codes = weight + 2 * kLanes + first / 8 * 64;
    for (int64_t c = 0; c < kTileInputs / 8; ++c) {
      const __m512i w = _mm512_loadu_si512(codes + c * 64);
      _mm512_store_si512(unpacked + c * 128, _mm512_and_si512(w, nibble));
      _mm512_store_si512(unpacked + c * 128 + 64,
                         _mm512_and_si512(_mm512_srli_epi16(w, 4), nibble));
    }
    return unpacked;
  }
};

struct Int8Tiles {
  static constexpr bool kSignedWeights = true;
  static int64_t group(const LinearTile&) { return kActivationGroup; }
  static int64_t group_bytes(int64_t group) { return group / 4 * 64; }
  static int64_t block_bytes(const LinearTile& tile) { return (tile.in + 3) / 4 * 64; }
  static int32_t offset(int32_t) { return 0; }
  static F32x16 group_scales(const std::byte*) { return set1(1); }
  static F32x16 finish(F32x16 total, const LinearTile& tile, int64_t block) {
    return mul(total, load(tile.scales + block * kLanes));
  }

  // Weights lie as tiles want them; where they end early, others follow.
  static const uint8_t* step(const std::byte* weight, int64_t first, int64_t valid,
                             uint8_t* unpacked) {
    const std::byte* codes = weight + first / 4 * 64;
    if (valid == kTileInputs) return reinterpret_cast<const uint8_t*>(codes);
    std::memset(unpacked, 0, kTileBytes);
    std::memcpy(unpacked, codes, size_t((valid + 3) / 4 * 64));
    return unpacked;
  }
};

// Products of a tile of rows with the weights in registers 4 and 5. Tiles take turns with two pairs
// of registers for their sums, so that one is multiplied while the one before it is added up.
template <class Format, int kSteps, int kTurn, int kBytes>
inline void multiply_rows(Panel<kBytes>& panel, int64_t first_row) {
  constexpr int kHigh = 2 * kTurn, kLow = kHigh + 1;
  const auto add_step = [&]<int kWeights>(std::integral_constant<int, kWeights>, int64_t step) {
    load_tile<6>(panel.inputs[step][0] + first_row * kTileInputs, kTileInputs);
    multiply_tiles<kHigh, 6, kWeights, Format::kSignedWeights>();
    if constexpr (kBytes == 2) {
      load_tile<7>(panel.inputs[step][1] + first_row * kTileInputs, kTileInputs);
      multiply_tiles<kLow, 7, kWeights, Format::kSignedWeights>();
    }
  };
  clear_tile<kHigh>();
  if constexpr (kBytes == 2) clear_tile<kLow>();
  add_step(std::integral_constant<int, 4>{}, 0);
  if constexpr (kSteps == 2) add_step(std::integral_constant<int, 5>{}, 1);
  store_tile<kHigh>(panel.sums[kTurn][0], 64);
  if constexpr (kBytes == 2) store_tile<kLow>(panel.sums[kTurn][1], 64);
}

// Adds a group's sums of a tile to the totals of its rows.
template <int kTurn, int kBytes>
inline void add_sums(const Panel<kBytes>& panel, int64_t first, int64_t last, F32x16 scales,
                     float* totals) {
  for (int64_t r = first; r < last; ++r) {
    const int64_t place = (r - first) * kLanes;
    __m512i sum = _mm512_load_si512(panel.sums[kTurn][0] + place);
    if constexpr (kBytes == 2)
      sum = _mm512_add_epi32(_mm512_slli_epi32(sum, 8),
                             _mm512_load_si512(panel.sums[kTurn][1] + place));
    const F32x16 dots =
        _mm512_cvtepi32_ps(_mm512_add_epi32(sum, _mm512_set1_epi32(panel.offsets[r])));
    float* total = totals + r * kLanes;
    store(total, fma(dots, mul(scales, set1(panel.scales[r])), load(total)));
  }
}

// A group of inputs of all rows, into the panel.
template <class Format, int kBytes>
void spread_group(const RowInput* inputs, int64_t rows, int64_t g, int64_t begin, int64_t values,
                  Panel<kBytes>& panel) {
  for (int64_t r = 0; r < rows; ++r) {
    const RowInput& input = inputs[r];
    panel.offsets[r] = Format::offset(input.sums[g]);
    panel.scales[r] = input.scales[g];
    for (int64_t s = 0; s * kTileInputs < values; ++s)
      spread_inputs<kBytes>(input.codes + kBytes * (begin + s * kTileInputs),
                            values - s * kTileInputs, panel.inputs[s][0] + r * kTileInputs,
                            panel.inputs[s][kBytes - 1] + r * kTileInputs);
  }
}

// The products of a block of outputs with that group.
template <class Format, int kSteps, int kBytes>
inline void add_group(const std::byte* weight, int64_t values, int64_t rows, int64_t tile_rows,
                      Panel<kBytes>& panel, float* totals) {
  const auto weights_of = [&](int64_t s) {
    return Format::step(weight, s * kTileInputs, std::min(kTileInputs, values - s * kTileInputs),
                        panel.weights[s]);
  };
  load_tile<4>(weights_of(0), 64);
  if constexpr (kSteps == 2) load_tile<5>(weights_of(1), 64);
  const F32x16 scales = Format::group_scales(weight);
  const auto multiply = [&]<int kTurn>(std::integral_constant<int, kTurn>, int64_t first) {
    if (first < rows) multiply_rows<Format, kSteps, kTurn>(panel, first);
  };
  const auto add = [&]<int kTurn>(std::integral_constant<int, kTurn>, int64_t first) {
    add_sums<kTurn>(panel, first, std::min(first + tile_rows, rows), scales, totals);
  };
  constexpr std::integral_constant<int, 0> even;
  constexpr std::integral_constant<int, 1> odd;
  multiply(even, 0);
  for (int64_t first = 0; first < rows; first += 2 * tile_rows) {
    multiply(odd, first + tile_rows);
    add(even, first);
    multiply(even, first + 2 * tile_rows);
    add(odd, first + tile_rows);
  }
}

// Rows [row, row + rows) and blocks [block, block + blocks) of a tile.
template <class Format, int kBytes>
void run_panel(const LinearTile& tile, int64_t row, int64_t rows, int64_t block, int64_t blocks,
               Panel<kBytes>& panel) {
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  const int64_t tile_rows = (rows + tiles - 1) / tiles;
  const TileShapes shapes([&](int tile_register) {
    return uint8_t(tile_register == 4 || tile_register == 5 ? kTileRows : tile_rows);
  });
  const int64_t group = Format::group(tile), block_bytes = Format::block_bytes(tile);
  const std::byte* weights = tile.weight + (tile.first_block + block) * block_bytes;
  for (int64_t b = 0; b < blocks; ++b) std::fill_n(panel.totals[b], rows * kLanes, 0.0f);
  for (int64_t begin = 0, g = 0; begin < tile.in; begin += group, ++g) {
    const int64_t values = std::min(group, tile.in - begin);
    spread_group<Format>(tile.rows + row, rows, g, begin, values, panel);
    for (int64_t b = 0; b < blocks; ++b) {
      const std::byte* weight = weights + b * block_bytes + g * Format::group_bytes(group);
      for (int64_t line = 0; line < Format::group_bytes(group); line += 64)
        ask_for(weight + Format::group_bytes(group) + line);
      if (values > kTileInputs) {
        add_group<Format, 2>(weight, values, rows, tile_rows, panel, panel.totals[b]);
      } else {
        add_group<Format, 1>(weight, values, rows, tile_rows, panel, panel.totals[b]);
      }
    }
  }
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t r = 0; r < rows; ++r)
      store_block(
          tile, row + r, block + b,
          Format::finish(load(panel.totals[b] + r * kLanes), tile, tile.first_block + block + b));
}

template <class Format, int kBytes>
void linear_tiles(const LinearTile& tile) {
  Panel<kBytes> panel;
  // Panels of about as many rows each: a last one of few would unpack all weights for them.
  const int64_t panels = (tile.row_count + kPanelRows - 1) / kPanelRows;
  const int64_t share = (tile.row_count + panels - 1) / panels;
  const int64_t panel_rows = (share + kTileRows - 1) / kTileRows * kTileRows;
  for (int64_t row = 0; row < tile.row_count; row += panel_rows)
    for (int64_t block = 0; block < tile.blocks; block += kPanelBlocks)
      run_panel<Format>(tile, row, std::min(panel_rows, tile.row_count - row), block,
                        std::min(kPanelBlocks, tile.blocks - block), panel);
}

template <int kBytes>
void linear_int4_amx(const LinearTile& tile) {
  const bool whole_tiles = tile.group == kTileInputs || tile.group == 2 * kTileInputs;
  if (tile.row_count < kFewestRows || !whole_tiles)
    return kLoops_avx512[kBytes - 1].linear_int4(tile);
  linear_tiles<Int4Tiles, kBytes>(tile);
}

template <int kBytes>
void linear_int8_amx(const LinearTile& tile) {
  if (tile.row_count < kFewestRows) return kLoops_avx512[kBytes - 1].linear_int8(tile);
  linear_tiles<Int8Tiles, kBytes>(tile);
}

}  // namespace

Loops amx_loops(int activation_bytes) {
  Loops loops = kLoops_avx512[activation_bytes - 1];
  loops.isa = Isa::amx;
  loops.linear_int4 = activation_bytes == 1 ? linear_int4_amx<1> : linear_int4_amx<2>;
  loops.linear_int8 = activation_bytes == 1 ? linear_int8_amx<1> : linear_int8_amx<2>;
  return loops;
}

}  // namespace slip
