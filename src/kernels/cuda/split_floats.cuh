// Products of bf16 weights with floats on tensor cores.
//
// An activation is the sum of two bf16 numbers, high + low, so that 16 of its bits count. They are
// two columns of the instruction, which has eight: four rows cost what one does.
#pragma once

#include <cuda_bf16.h>

#include "kernels/cuda/expert_slabs.cuh"

namespace slip {

inline constexpr int kSplitRows = 4;  // rows of a step that one instruction takes

// Bytes of a slab of one row: its high parts, and the low ones so far behind them that lanes which
// read both never meet in a bank of shared memory.
inline constexpr int kSplitLow = kSlabIn * int(sizeof(__nv_bfloat16)) + 64;
inline constexpr int kSplitBytes = 2 * kSplitLow;

// One warp, one slab of one row: lane l brings inputs 4 l .. 4 l + 3 (zero past the end).
__device__ __forceinline__ void split_slab(float4 x, std::byte* slab) {
  const float values[4] = {x.x, x.y, x.z, x.w};
  __nv_bfloat16 high[4], low[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    high[i] = __float2bfloat16_rn(values[i]);
    low[i] = __float2bfloat16_rn(values[i] - __bfloat162float(high[i]));
  }
  std::byte* place = slab + int(threadIdx.x) % kWarp * int(sizeof(high));
  *reinterpret_cast<uint2*>(place) = *reinterpret_cast<const uint2*>(high);
  *reinterpret_cast<uint2*>(place + kSplitLow) = *reinterpret_cast<const uint2*>(low);
}

// A lane's part of a slab: outputs l / 4 and l / 4 + 8, each with eight inputs of every 32, those
// from 8 (l % 4) on. An instruction takes four of the eight; in which order it sees inputs does not
// matter, as long as activations lie in the same one.
struct Bf16Words {
  static constexpr int kPieces = kSlabIn / 32;
  uint4 first[kPieces], second[kPieces];
};

// Of a tile whose rows are whole slabs.
__device__ __forceinline__ Bf16Words load_bf16(const WeightTile& tile, int slab) {
  const int lane = int(threadIdx.x) % kWarp;
  const std::byte* row = tile.values + int64_t(lane / 4) * tile.row_bytes + slab * kSlabIn * 2;
  Bf16Words words;
#pragma unroll
  for (int i = 0; i < Bf16Words::kPieces; ++i) {
    const std::byte* piece = row + (i * 4 + lane % 4) * 16;
    words.first[i] = load_stream(piece);
    words.second[i] = load_stream(piece + int64_t(tile.row_bytes) * (kTileOut / 2));
  }
  return words;
}

// A slab's share in outputs l / 4 and l / 4 + 8 of one row, whose columns are the lane's of the
// sums. inputs: the lane's, in shared memory.
__device__ __forceinline__ float2 bf16_slab_values(const Bf16Words& words,
                                                   const std::byte* inputs) {
  Sums sums[2];  // in turn: an instruction waits for the one whose sums it adds to
#pragma unroll
  for (int i = 0; i < Bf16Words::kPieces; ++i) {
    const uint4 x = *reinterpret_cast<const uint4*>(inputs + i * 64);
    const uint4 a = words.first[i], b = words.second[i];
    mma_bf16(sums[0], {{a.x, b.x, a.y, b.y}}, x.x, x.y);
    mma_bf16(sums[1], {{a.z, b.z, a.w, b.w}}, x.z, x.w);
  }
  const auto both = [&](int i) { return sums[0].v[i] + sums[1].v[i]; };
  return make_float2(both(0) + both(1), both(2) + both(3));
}

}  // namespace slip
