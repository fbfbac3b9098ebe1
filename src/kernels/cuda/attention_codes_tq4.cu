#include "kernels/cuda/attention_codes.cuh"
#include "kernels/cuda/attention_codes.h"

namespace slip {

TileKernel coded_tile_kernel_of_tq4(int value_bits, int tiles) {
  return coded_tile_kernel_of<4, kTileDim>(value_bits, tiles);
}

}  // namespace slip
