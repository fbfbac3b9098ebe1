// Slabs of experts' weights on their way from memory through tensor cores.
//
// All kernels sum in the same order: a slab of 128 inputs has a value of its own, in units of its
// activations and summed over its groups, and values of slabs are added one after the other. So it
// does not matter to a row which warp took which slab, or which kernel it was.
#pragma once

#include "kernels/cuda/device/instructions.cuh"
#include "kernels/cuda/experts.h"
#include "kernels/cuda/quads.cuh"
#include "kernels/cuda/slab_formats.cuh"

namespace slip {

// Weights move in units of 1 KB: a slab of int4 is one, a slab of bytes two, of f16 four.
inline constexpr int kUnitBytes = 1024;
inline constexpr int kPieceBytes = kWarp * 16;         // 16 bytes of each lane
inline constexpr int kGroupScaleBytes = kTileOut * 2;  // of int4: f16
inline constexpr int kSlabScaleBytes = 128;  // the most that a slab has: four groups of 16 f16

// 16 outputs of a weight.
struct alignas(16) WeightTile {
  const std::byte* values;  // of slab 0; of floats: of the first output
  const std::byte* scales;  // of slab 0
  int32_t units;            // of one slab; 0: floats
  int32_t scale_words;      // of one slab, 32 bits each
  int32_t scale_stride;     // words from one slab's scales to the next one's
  int32_t group;
  int32_t row_bytes;  // floats only
  DeviceFormat format;
};

__device__ __forceinline__ int slabs_of(int in) { return (in + kSlabIn - 1) / kSlabIn; }

__device__ __forceinline__ int64_t float_row_bytes(DeviceFormat format, int in) {
  return (int64_t(in) * (format == DeviceFormat::f32 ? 4 : 2) + 15) / 16 * 16;
}

__device__ __forceinline__ WeightTile weight_tile(const ExpertWeight& weight, int tile, int in) {
  const int64_t slabs_before = int64_t(tile) * slabs_of(in);
  const std::byte* scales = weight.values + int64_t(weight.scales_at) * 256;
  WeightTile result{weight.values, scales, 0, 0, 0, weight.group, 0, weight.format};
  switch (weight.format) {
    case DeviceFormat::int4_group:
      result.units = 1;
      result.scale_words = result.scale_stride = kSlabIn / weight.group * (kTileOut / 2);
      result.scales += slabs_before * result.scale_words * 4;
      break;
    case DeviceFormat::f16_slabs:
    case DeviceFormat::int8_row:
      result.units = weight.format == DeviceFormat::int8_row ? 2 : 4;
      result.scale_words = kTileOut;  // the same for all slabs
      result.scales += int64_t(tile) * kTileOut * 4;
      break;
    case DeviceFormat::fp8_block:
      result.units = 2;
      result.scale_words = result.scale_stride = 1;
      result.scales += int64_t(tile / (kFp8Block / kTileOut)) * slabs_of(in) * 4;
      break;
    default:
      result.row_bytes = int32_t(float_row_bytes(weight.format, in));
      result.values += int64_t(tile) * kTileOut * result.row_bytes;
      break;
  }
  result.values += slabs_before * result.units * kUnitBytes;
  return result;
}

// The same of int4 with so many groups to a slab; what only others need is left out.
__device__ __forceinline__ WeightTile int4_tile(const ExpertWeight& weight, int tile, int in,
                                                int groups) {
  const int64_t slabs_before = int64_t(tile) * slabs_of(in);
  WeightTile result{};
  result.values = weight.values + slabs_before * kUnitBytes;
  result.scales =
      weight.values + int64_t(weight.scales_at) * 256 + slabs_before * groups * kGroupScaleBytes;
  return result;
}

__device__ __forceinline__ ExpertWeight weight_of(const ExpertsStep& step, ExpertMatrix matrix,
                                                  int expert) {
  const ExpertRow& row = step.weights_of[matrix];
  if (row.stride == 0) return step.table[matrix * step.experts + expert];
  ExpertWeight weight = row.first;
  weight.values += expert * row.stride;
  return weight;
}

// Bytes of a tile's values.
__device__ __forceinline__ int64_t tile_bytes(const WeightTile& tile, int slabs) {
  return int64_t(slabs) * tile.units * kUnitBytes + int64_t(tile.row_bytes) * kTileOut;
}

// Factors of a lane's outputs, l / 4 and l / 4 + 8, in group `group` of a slab.
template <class Slab>
__device__ __forceinline__ float2 slab_scales(const std::byte* scales, int group) {
  if constexpr (Slab::kFormat == DeviceFormat::int4_group)
    return lane_scales(scales + group * kTileOut * 2);
  const auto* values = reinterpret_cast<const float*>(scales);
  const int output = int(threadIdx.x) % kWarp / 4;
  if constexpr (has_output_scales(Slab::kFormat))
    return make_float2(values[output], values[output + 8]);
  return make_float2(values[0] * kFp8Factor, values[0] * kFp8Factor);
}

// A lane's words of two steps.
template <class Slab>
inline constexpr int kPairWords = Slab::kWords / (kStepsPerSlab / 2);

// values = sums * scales + values, and the sums begin anew.
__device__ __forceinline__ void close_group(float (&values)[4], Sums& sums, float2 scales) {
  values[0] = fmaf(sums.v[0], scales.x, values[0]);
  values[1] = fmaf(sums.v[1], scales.x, values[1]);
  values[2] = fmaf(sums.v[2], scales.y, values[2]);
  values[3] = fmaf(sums.v[3], scales.y, values[3]);
  sums = Sums{};
}

// Whether rows can be read in fours; a matter of speed alone.
__device__ __forceinline__ bool in_quads(const float* rows, int dim) {
  return reinterpret_cast<uintptr_t>(rows) % 16 == 0 && dim % 4 == 0;
}

// Inputs 4 l .. 4 l + 3 of a slab for lane l; zero past the end of the row.
__device__ __forceinline__ float4 lane_inputs(const float* row, int slab, int in, bool quads) {
  const int first = slab * kSlabIn + int(threadIdx.x) % kWarp * 4;
  return quads ? load_quad<true>(row, first, in) : load_quad<false>(row, first, in);
}

// The same inputs' weights, of a tile of floats. What pads a row meets inputs that are zero.
__device__ __forceinline__ float4 lane_floats(const WeightTile& tile, int output, int slab,
                                              int in) {
  const int first = slab * kSlabIn + int(threadIdx.x) % kWarp * 4;
  if (first >= in) return make_float4(0, 0, 0, 0);
  const std::byte* row = tile.values + int64_t(output) * tile.row_bytes;
  if (tile.format == DeviceFormat::f32)
    return *reinterpret_cast<const float4*>(row + int64_t(first) * 4);
  const uint2 bits = *reinterpret_cast<const uint2*>(row + int64_t(first) * 2);
  const auto value = [&](uint32_t half) {
    return tile.format == DeviceFormat::bf16 ? bf16_value(uint16_t(half))
                                             : __half2float(__ushort_as_half(uint16_t(half)));
  };
  return make_float4(value(bits.x & 0xffff), value(bits.x >> 16), value(bits.y & 0xffff),
                     value(bits.y >> 16));
}

}  // namespace slip
