// The formats that lie in plain rows: pieces of 16 bytes and the floats in them.
#pragma once

#include "kernels/cuda/device/warp.cuh"
#include "quant/weight.h"

namespace slip {

struct F32Piece {
  static constexpr int kValues = 4;
  __device__ static void widen(uint4 piece, float (&values)[kValues]) {
    values[0] = __uint_as_float(piece.x);
    values[1] = __uint_as_float(piece.y);
    values[2] = __uint_as_float(piece.z);
    values[3] = __uint_as_float(piece.w);
  }
};

template <class Widen>
__device__ __forceinline__ void widen_pairs(uint4 piece, float (&values)[8], Widen widen) {
  const uint32_t pairs[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = widen(uint16_t(pairs[i] & 0xffff));
    values[2 * i + 1] = widen(uint16_t(pairs[i] >> 16));
  }
}

struct Bf16Piece {
  static constexpr int kValues = 8;
  __device__ static void widen(uint4 piece, float (&values)[kValues]) {
    widen_pairs(piece, values, [](uint16_t bits) { return bf16_value(bits); });
  }
};

struct F16Piece {
  static constexpr int kValues = 8;
  __device__ static void widen(uint4 piece, float (&values)[kValues]) {
    widen_pairs(piece, values, [](uint16_t bits) { return __half2float(__ushort_as_half(bits)); });
  }
};

// A row's pieces: its bytes rounded up to 16, as device/weight_tiles.h has them.
template <class Piece>
__device__ __forceinline__ int64_t pieces_of_row(int64_t in) {
  return (in + Piece::kValues - 1) / Piece::kValues;
}

}  // namespace slip
