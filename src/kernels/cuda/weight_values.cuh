// Single values of packed weights, for kernels that need few of them.
#pragma once

#include "kernels/cuda/device/mma.cuh"

namespace slip {

// Element (output, input) of a packed weight; the way back from device/weight_tiles.h.
__device__ inline float slab_value(const DeviceWeight& table, int64_t output, int64_t input) {
  const int64_t slabs = (table.in + kSlabIn - 1) / kSlabIn;
  const int64_t tile = output / kTileOut, slab = input / kSlabIn;
  const bool upper = output % kTileOut >= 8;
  const int lane = int(output % 8 * 4 + input % 16 / 4);
  const int step = int(input % kSlabIn / 16), within = int(input % 4);
  const auto* bytes = reinterpret_cast<const uint8_t*>(table.values) +
                      (tile * slabs + slab) * slab_bytes(table.format);
  if (table.format == DeviceFormat::f16_slabs) {
    const int half = (step * kWarp + lane) * 8 + within / 2 * 4 + (upper ? 2 : 0) + within % 2;
    return __half2float(reinterpret_cast<const __half*>(bytes)[half]) *
           static_cast<const float*>(table.scales)[output];
  }
  if (table.format == DeviceFormat::int4_group) {
    const int nibble = (upper ? 1 : 0) + within / 2 * 2 + within % 2 * 4;
    const int byte = (step / 4 * kWarp + lane) * 16 + step % 4 * 4 + nibble / 2;
    const int code = bytes[byte] >> (nibble % 2 * 4) & 15;
    const int64_t groups = kSlabIn / table.group;
    const int64_t group = (tile * slabs + slab) * groups + input % kSlabIn / table.group;
    const auto* scales = static_cast<const __half*>(table.scales);
    return float(code - 8) * __half2float(scales[group * kTileOut + output % 8 * 2 + upper]);
  }
  const int code = bytes[(step / 2 * kWarp + lane) * 16 + step % 2 * 8 + (upper ? 4 : 0) + within];
  const auto* scales = static_cast<const float*>(table.scales);
  if (table.format == DeviceFormat::int8_row) return float(int8_t(code)) * scales[output];
  const uint16_t bits = uint16_t((code & 0x7f) << 7 | (code & 0x80) << 8);
  return __half2float(__ushort_as_half(bits)) * kFp8Factor *
         scales[output / kFp8Block * slabs + slab];
}

// Of a row of floats.
__device__ inline float float_value(const std::byte* row, DeviceFormat format, int64_t input) {
  if (format == DeviceFormat::f32) return reinterpret_cast<const float*>(row)[input];
  const uint16_t bits = reinterpret_cast<const uint16_t*>(row)[input];
  return format == DeviceFormat::bf16 ? bf16_value(bits) : __half2float(__ushort_as_half(bits));
}

__device__ inline float float_value(const DeviceWeight& table, int64_t output, int64_t input) {
  const int64_t size = table.format == DeviceFormat::f32 ? 4 : 2;
  const std::byte* row = table.values + output * ((table.in * size + 15) / 16 * 16);
  return float_value(row, table.format, input);
}

}  // namespace slip
