// How the CUDA backend keeps weights, so that a warp's loads are whole lines and arrive in the
// order in which tensor cores take them.
//
// fp8_block, int8_row, int4_group, and bf16 and f16 where there is much of it: tiles of 16 outputs
// x 128 inputs ("slabs"), [out/16][in/128], both rounded up, places past the end zero. mma.m16n8k16
// takes 16 outputs x 16 inputs; which inputs is ours to choose, as long as activations follow: in
// step s (0..7) of a slab lane l takes
//   outputs l / 4 and l / 4 + 8, inputs 16 * s + 4 * (l % 4) + {0, 1, 2, 3}
// A lane's bytes of a slab lie in pieces of 16, piece p of lane l at (p * 32 + l) * 16:
//   int4   2 pieces; 32-bit word s of the lane (word s % 4 of piece s / 4) holds step s: nibble n
//   is
//          output l / 4 + 8 * (n % 2), input 2 * (n / 2 % 2) + n / 4   (codes as stored: 0..15), so
//          that the pairs of nibbles n and n + 4 are the registers of the instruction
//   int8, fp8   4 pieces; 64-bit word s of the lane (half s % 2 of piece s / 2) holds step s: bytes
//          0..3 are output l / 4, inputs 0..3; bytes 4..7 output l / 4 + 8
//   bf16, f16   8 pieces; piece s holds step s in f16: inputs 0 and 1 of output l / 4 and of output
//          l / 4 + 8, then inputs 2 and 3 of both. Units are powers of two, one for each output,
//          whose largest weight is then near f16's largest: what has less than a 2^-29th of it
//          loses bits, far fewer than rounded activations do
// Behind all slabs, at a multiple of 256 bytes:
//   int4   f16 scales [out/16][in/128][128 / group][16 outputs in the order 0 8 1 9 ...], so that
//          a lane's two are one word
//   int8   f32 scales [out rounded up to 16]
//   fp8    f32 scales [ceil(out/128)][ceil(in/128)], as in the plain layout
//   bf16, f16   f32 units [out rounded up to 16]
//
// f32, and bf16 and f16 of routers, gates and other small weights, whose products are to be those
// of floats: as in the plain layout, rows padded to a multiple of 16 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/weight.h"

namespace slip {

inline constexpr int kTileOut = 16;
inline constexpr int kSlabIn = 128;

// How it lies: first rows, then slabs.
enum class DeviceFormat : uint8_t {
  f32,
  bf16,
  f16,
  f16_slabs,
  fp8_block,
  int8_row,
  int4_group,
};

inline constexpr bool in_slabs(DeviceFormat format) { return format >= DeviceFormat::f16_slabs; }
// Whether every output has a scale, which is the same for all of its inputs.
inline constexpr bool has_output_scales(DeviceFormat format) {
  return format == DeviceFormat::int8_row || format == DeviceFormat::f16_slabs;
}

// What a weight becomes when it is packed.
inline DeviceFormat device_format(const WeightInfo& info) {
  constexpr int64_t kLarge = 512;
  const bool large = info.out >= kLarge && info.in >= kLarge;
  switch (info.format) {
    case WeightFormat::f32: return DeviceFormat::f32;
    case WeightFormat::bf16: return large ? DeviceFormat::f16_slabs : DeviceFormat::bf16;
    case WeightFormat::f16: return large ? DeviceFormat::f16_slabs : DeviceFormat::f16;
    case WeightFormat::fp8_block: return DeviceFormat::fp8_block;
    case WeightFormat::int8_row: return DeviceFormat::int8_row;
    case WeightFormat::int4_group: return DeviceFormat::int4_group;
  }
  unreachable("WeightFormat");
}

inline int64_t tile_count(int64_t out) { return (out + kTileOut - 1) / kTileOut; }
inline int64_t slab_count(int64_t in) { return (in + kSlabIn - 1) / kSlabIn; }

// Bytes of one slab: 1024, 2048 or 4096.
inline constexpr int slab_bytes(DeviceFormat format) {
  return format == DeviceFormat::int4_group  ? kTileOut * kSlabIn / 2
         : format == DeviceFormat::f16_slabs ? kTileOut * kSlabIn * 2
                                             : kTileOut * kSlabIn;
}

inline size_t slabs_bytes(const WeightInfo& info) {
  const size_t bytes =
      size_t(tile_count(info.out) * slab_count(info.in)) * size_t(slab_bytes(device_format(info)));
  return (bytes + 255) / 256 * 256;
}

inline size_t slab_scale_bytes(const WeightInfo& info) {
  switch (device_format(info)) {
    case DeviceFormat::int4_group:
      return size_t(tile_count(info.out) * slab_count(info.in) * (kSlabIn / info.group)) *
             kTileOut * sizeof(uint16_t);
    case DeviceFormat::f16_slabs:
    case DeviceFormat::int8_row: return size_t(tile_count(info.out)) * kTileOut * sizeof(float);
    case DeviceFormat::fp8_block:
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
  if (in_slabs(device_format(info))) return slabs_bytes(info) + slab_scale_bytes(info);
  return size_t(info.out) * padded_row_bytes(info);
}

// A packed weight as kernels take it.
struct DeviceWeight {
  const std::byte* values;
  const void* scales;  // behind the slabs; null for floats
  int64_t out, in;
  int32_t group;
  DeviceFormat format;

  bool operator==(const DeviceWeight&) const = default;
};

inline DeviceWeight device_weight(const Weight& weight) {
  const WeightInfo& info = weight.info;
  const DeviceFormat format = device_format(info);
  const void* scales = in_slabs(format) ? weight.values.data + slabs_bytes(info) : nullptr;
  return {weight.values.data, scales, info.out, info.in, info.group, format};
}

}  // namespace slip
