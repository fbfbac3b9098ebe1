// How the CUDA backend keeps weights, so that a warp's loads are whole lines and arrive in the
// order in which tensor cores take them.
//
// fp8_block, int8_row, int4_group: tiles of 16 outputs x 128 inputs ("slabs"), [out/16][in/128],
// both rounded up, places past the end zero. mma.m16n8k16 takes 16 outputs x 16 inputs; which
// inputs is ours to choose, as long as activations follow: in step s (0..7) of a slab lane l takes
//   outputs l / 4 and l / 4 + 8, inputs 16 * s + 4 * (l % 4) + {0, 1, 2, 3}
// A lane's bytes of a slab lie in pieces of 16, piece p of lane l at (p * 32 + l) * 16:
//   int4   2 pieces; 32-bit word s of the lane (word s % 4 of piece s / 4) holds step s: nibble n
//   is
//          output l / 4 + 8 * (n % 2), input 2 * (n / 2 % 2) + n / 4   (codes as stored: 0..15), so
//          that the pairs of nibbles n and n + 4 are the registers of the instruction
//   int8, fp8   4 pieces; 64-bit word s of the lane (half s % 2 of piece s / 2) holds step s: bytes
//          0..3 are output l / 4, inputs 0..3; bytes 4..7 output l / 4 + 8
// Behind all slabs, at a multiple of 256 bytes:
//   int4   f16 scales [out/16][in/128][128 / group][16 outputs in the order 0 8 1 9 ...], so that
//          a lane's two are one word
//   int8   f32 scales [out rounded up to 16]
//   fp8    f32 scales [ceil(out/128)][ceil(in/128)], as in the plain layout
//
// f32, bf16, f16: as in the plain layout, rows padded to a multiple of 16 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/weight.h"

namespace slip {

inline constexpr int kTileOut = 16;
inline constexpr int kSlabIn = 128;

inline bool in_slabs(WeightFormat format) {
  return format == WeightFormat::fp8_block || format == WeightFormat::int8_row ||
         format == WeightFormat::int4_group;
}

inline int64_t tile_count(int64_t out) { return (out + kTileOut - 1) / kTileOut; }
inline int64_t slab_count(int64_t in) { return (in + kSlabIn - 1) / kSlabIn; }

// Bytes of one slab: 1024 or 2048.
inline constexpr int slab_bytes(WeightFormat format) {
  return format == WeightFormat::int4_group ? kTileOut * kSlabIn / 2 : kTileOut * kSlabIn;
}

inline size_t slabs_bytes(const WeightInfo& info) {
  const size_t bytes =
      size_t(tile_count(info.out) * slab_count(info.in)) * size_t(slab_bytes(info.format));
  return (bytes + 255) / 256 * 256;
}

inline size_t slab_scale_bytes(const WeightInfo& info) {
  switch (info.format) {
    case WeightFormat::int4_group:
      return size_t(tile_count(info.out) * slab_count(info.in) * (kSlabIn / info.group)) *
             kTileOut * sizeof(uint16_t);
    case WeightFormat::int8_row: return size_t(tile_count(info.out)) * kTileOut * sizeof(float);
    case WeightFormat::fp8_block:
      return size_t((info.out + kFp8Block - 1) / kFp8Block) *
             size_t((info.in + kFp8Block - 1) / kFp8Block) * sizeof(float);
    default: return 0;
  }
}

// Bytes from one row to the next of a weight that is not in slabs.
inline size_t padded_row_bytes(const WeightInfo& info) {
  const size_t bytes = size_t(info.in) * (info.format == WeightFormat::f32 ? 4 : 2);
  return (bytes + 15) / 16 * 16;
}

inline size_t cuda_packed_bytes(const WeightInfo& info) {
  if (in_slabs(info.format)) return slabs_bytes(info) + slab_scale_bytes(info);
  return size_t(info.out) * padded_row_bytes(info);
}

// A packed weight as kernels take it.
struct DeviceWeight {
  const std::byte* values;
  const void* scales;  // behind the slabs; null for floats
  int64_t out, in;
  int32_t group;
  WeightFormat format;

  bool operator==(const DeviceWeight&) const = default;
};

inline DeviceWeight device_weight(const Weight& weight) {
  const WeightInfo& info = weight.info;
  return {
      weight.values.data, in_slabs(info.format) ? weight.values.data + slabs_bytes(info) : nullptr,
      info.out,           info.in,
      info.group,         info.format};
}

}  // namespace slip
