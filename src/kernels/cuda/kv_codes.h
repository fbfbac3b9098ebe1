// Coded keys and values (KvPages) as kernels of this backend take them.
//
// Pages of kTilePositions positions and heads of kTileDim or kWideTileDim values, which is what
// models have, keep their codes as lanes of attention_tiles.cuh take them ("tiles"): warp w of four
// scores positions [16 w, 16 w + 16) and mixes a quarter of the dimensions. With g = lane / 4,
// j = lane % 4 and m = dimensions / 64, a lane's codes of a page are 4 m octets of 8 codes:
//   keys    octet o, code k: position 16 w + 8 (o / 8 % 2) + g,
//           dimension 256 (o / 16) + 32 (o % 8) + 8 j + k
//   values  octet o, code k, s = o / m: position 32 (s / 2) + 8 j + 4 (s % 2) + k % 4,
//           dimension 16 m w + 2 m g + 2 (o % m) + k / 4
// Books are symmetric, so that a code is a sign and the number of a magnitude. In words of 32 bits:
//   4 bits  word o: magnitude of code k at bits 4 k .. 4 k + 2; signs of codes 0 .. 3 at bits 7,
//   15,
//           23, 31, of codes 4 .. 7 at bits 3, 11, 19, 27
//   3 bits  three words for octets 4 n .. 4 n + 3: magnitudes of octets 0 and 1, code k at bits 4 k
//           and 4 k + 2; of octets 2 and 3; signs, octet q, code k at bit 8 (k % 4) + 7 - 2 q - k /
//           4
//   2 bits  two words for them: magnitudes, octet q, code k at bit 4 k + q; signs as for 3 bits
//   8 bits  two words for each octet, a signed byte per code
// A page is [4 warps][pieces][32 lanes] of 16 bytes, the words of a lane in order.
//
// Other shapes keep codes as the reference does: those of a vector one after the other, lowest bit
// first.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/args.h"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/spans.h"
#include "quant/turboquant.h"

namespace slip {

inline constexpr int kTilePositions = 64;
inline constexpr int kTileDim = 256;
inline constexpr int kWideTileDim = 512;

// Bit d is set where dimension d changes its sign before the rotation.
struct SignBits {
  uint32_t words[kMaxTurboDim / 32];
};
SignBits sign_bits(KvSide side);

// A code book (TurboBook).
struct DeviceBook {
  float thresholds[15];
  int8_t levels[16];
  float kappa;
  int32_t bits;  // 8: no book
};
DeviceBook device_book(KvCodec codec);

// The keys, or the values, of one layer and one step.
struct CodedKvSide {
  uint8_t* codes;
  uint16_t* scales;
  uint16_t* tail;
  float* rows;  // of the step
  SignBits signs;
  DeviceBook book;
  bool is_keys;
};
CodedKvSide coded_kv_side(KvSide side, const KvPages& kv, const View& rows);

struct CodedKvShape {
  int32_t kv_heads, page_len, head_dim;

  __host__ __device__ bool in_tiles() const {
    return page_len == kTilePositions && (head_dim == kTileDim || head_dim == kWideTileDim);
  }
};
inline CodedKvShape coded_kv_shape(const KvPages& kv) {
  return {int32_t(kv.key_tail.shape[1]), int32_t(kv.key_scales.shape[2]),
          int32_t(kv.key_tail.shape[3])};
}

// rotate_and_store() of a coded cache.
void rotate_and_store_coded(const Launcher& launcher, const RotateAndStoreArgs& args,
                            const DeviceSpan* spans);

}  // namespace slip
