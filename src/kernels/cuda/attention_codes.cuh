// Attention to coded caches, for keys of kKeyBits bits and heads of kDim.
#pragma once

#include "kernels/cuda/attention_tiles.cuh"

namespace slip {

template <int kKeyBits, int kDim>
TileKernel coded_tile_kernel_of(int value_bits, int tiles) {
  const auto of = [tiles]<int kValueBits>(std::integral_constant<int, kValueBits>) -> TileKernel {
    using Cache = CodedCache<kKeyBits, kValueBits, kDim>;
    return tiles == 1 ? attend_tiles<Cache, 1> : attend_tiles<Cache, 2>;
  };
  switch (value_bits) {
    case 8: return of(std::integral_constant<int, 8>());
    case 4: return of(std::integral_constant<int, 4>());
    case 3: return of(std::integral_constant<int, 3>());
    case 2: return of(std::integral_constant<int, 2>());
    default: unreachable("bits of coded values");
  }
}

}  // namespace slip
