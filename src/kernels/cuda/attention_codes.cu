#include "kernels/cuda/attention_codes.h"
#include "quant/number_formats.h"

namespace slip {

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
    case 8: return coded_tile_kernel_of_int8(value_bits, tiles);
    case 4: return coded_tile_kernel_of_tq4(value_bits, tiles);
    case 3: return coded_tile_kernel_of_tq3(value_bits, tiles);
    case 2: return coded_tile_kernel_of_tq2(value_bits, tiles);
    default: unreachable("bits of coded keys");
  }
}

}  // namespace slip
