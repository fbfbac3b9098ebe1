// Kernels for coded keys of so many bits; a file each, since they take long to compile.
#pragma once

#include "kernels/cuda/attention.h"

namespace slip {

TileKernel coded_tile_kernel_of_int8(int value_bits, int tiles);
TileKernel coded_tile_kernel_of_tq4(int value_bits, int tiles);
TileKernel coded_tile_kernel_of_tq3(int value_bits, int tiles);
TileKernel coded_tile_kernel_of_tq2(int value_bits, int tiles);

}  // namespace slip
