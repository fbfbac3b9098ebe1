// Tiles of queries over plain caches.
#include "kernels/cuda/attention_tiles.cuh"

namespace slip {
namespace {

template <class Rows>
TileKernel kernel_of(int64_t head_dim, int tiles) {
  if (head_dim == 512)
    return tiles == 1 ? attend_tiles<PlainCache<Rows, 512>, 1>
                      : attend_tiles<PlainCache<Rows, 512>, 2>;
  if (head_dim == 256)
    return tiles == 1 ? attend_tiles<PlainCache<Rows, 256>, 1>
                      : attend_tiles<PlainCache<Rows, 256>, 2>;
  if (head_dim == 128)
    return tiles == 1 ? attend_tiles<PlainCache<Rows, 128>, 1>
                      : attend_tiles<PlainCache<Rows, 128>, 2>;
  return nullptr;
}

}  // namespace

TileKernel plain_tile_kernel(KvCodec codec, int64_t head_dim, int tiles) {
  switch (codec) {
    case KvCodec::bf16: return kernel_of<Bf16Rows>(head_dim, tiles);
    case KvCodec::fp8: return kernel_of<Fp8Rows>(head_dim, tiles);
    default: return nullptr;
  }
}

}  // namespace slip
