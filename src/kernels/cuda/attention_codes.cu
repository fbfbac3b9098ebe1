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

TileKernel coded_tile_kernel(const KvRecipe& recipe, int64_t head_dim, int tiles) {
  const bool wide = head_dim == kWideTileDim;
  const auto kernel_for = [&] {
    switch (bits_of(recipe.keys)) {
      case 8: return wide ? coded_tile_kernel_of_wide_int8 : coded_tile_kernel_of_int8;
      case 4: return wide ? coded_tile_kernel_of_wide_tq4 : coded_tile_kernel_of_tq4;
      case 3: return wide ? coded_tile_kernel_of_wide_tq3 : coded_tile_kernel_of_tq3;
      case 2: return wide ? coded_tile_kernel_of_wide_tq2 : coded_tile_kernel_of_tq2;
      default: unreachable("bits of coded keys");
    }
  };
  return kernel_for()(bits_of(recipe.values), tiles);
}

}  // namespace slip
