// How the CPU backend keeps weights: blocks of 16 outputs, one output per vector lane, so that a
// block is one stream of bytes and sums never cross lanes.
//   f32, bf16, f16   [blocks][in][16 lanes]
//   fp8_block        [blocks][in][16 lanes], then the plain scales
//   int8_row         [blocks][ceil(in/4)][16 lanes][4 inputs], then scales f32 [blocks * 16]
//   int4_group       [blocks][groups]{ f16 scales [16]; [group/8][16 lanes][4 bytes] }
// Lanes past the last output are zero.
#pragma once

#include "kernels/cpu/simd/loops.h"
#include "quant/weight.h"

namespace slip {

inline int64_t block_count(int64_t out) { return (out + kLanes - 1) / kLanes; }

size_t cpu_packed_bytes(const WeightInfo& info);
Weight cpu_pack(const Weight& plain, std::span<std::byte> storage);

// Bytes of one block of 16 outputs.
size_t cpu_block_bytes(const WeightInfo& info);

// Scales that lie behind the blocks (fp8, int8).
const float* cpu_trailing_scales(const Weight& packed);

// Reads one row back; used for embedding lookups.
void cpu_unpack_row(const Weight& packed, int64_t row, float* out);

}  // namespace slip
