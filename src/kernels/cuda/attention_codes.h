// Kernels for coded keys of so many bits, and for wide heads of them; a file each, since they take
// long to compile.
#pragma once

#include "kernels/cuda/attention.h"

namespace slip {

TileKernel coded_tile_kernel_of_int8(int value_bits, int tiles);
TileKernel coded_tile_kernel_of_tq4(int value_bits, int tiles);
TileKernel coded_tile_kernel_of_tq3(int value_bits, int tiles);
TileKernel coded_tile_kernel_of_tq2(int value_bits, int tiles);

TileKernel coded_tile_kernel_of_wide_int8(int value_bits, int tiles);
TileKernel coded_tile_kernel_of_wide_tq4(int value_bits, int tiles);
TileKernel coded_tile_kernel_of_wide_tq3(int value_bits, int tiles);
TileKernel coded_tile_kernel_of_wide_tq2(int value_bits, int tiles);

}  // namespace slip
