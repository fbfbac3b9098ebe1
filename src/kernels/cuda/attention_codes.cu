// Tiles of queries over coded caches.
#include <algorithm>

#include "kernels/cuda/attention_tiles.cuh"
#include "quant/number_formats.h"

namespace slip {
namespace {

template <int kKeyBits, int kValueBits>
TileKernel kernel_of(int tiles) {
  using Cache = CodedCache<kKeyBits, kValueBits>;
  return tiles == 1 ? attend_tiles<Cache, 1> : attend_tiles<Cache, 2>;
}

template <int kKeyBits>
TileKernel kernel_of(int value_bits, int tiles) {
  switch (value_bits) {
    case 8: return kernel_of<kKeyBits, 8>(tiles);
    case 4: return kernel_of<kKeyBits, 4>(tiles);
    case 3: return kernel_of<kKeyBits, 3>(tiles);
    case 2: return kernel_of<kKeyBits, 2>(tiles);
    default: unreachable("bits of coded values");
  }
}

}  // namespace

MagnitudeTable magnitude_table(KvCodec codec) {
  MagnitudeTable table{};
  if (codec == KvCodec::int8) return table;
  const std::span<const int8_t> levels = turbo_book(bits_of(codec)).levels;
  const size_t half = levels.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    const uint32_t bits = float_to_f16(float(levels[half + i]));
    table.high[i / 4] |= bits >> 8 << (8 * (i % 4));
    table.low[i / 4] |= (bits & 0xff) << (8 * (i % 4));
  }
  return table;
}

TileKernel coded_tile_kernel(const KvRecipe& recipe, int tiles) {
  const int value_bits = bits_of(recipe.values);
  switch (bits_of(recipe.keys)) {
    case 8: return kernel_of<8>(value_bits, tiles);
    case 4: return kernel_of<4>(value_bits, tiles);
    case 3: return kernel_of<3>(value_bits, tiles);
    case 2: return kernel_of<2>(value_bits, tiles);
    default: unreachable("bits of coded keys");
  }
}

}  // namespace slip
