#include "kernels/cuda/attention_codes.cuh"
#include "kernels/cuda/attention_codes.h"

namespace slip {

TileKernel coded_tile_kernel_of_tq3(int value_bits, int tiles) {
  return coded_tile_kernel_of<3, kTileDim>(value_bits, tiles);
}

}  // namespace slip
