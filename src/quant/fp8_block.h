// FP8 weights with one scale per block of 128 x 128, as Qwen and DeepSeek publish them: checks and
// scales for the plain fp8_block layout (the codes are stored as they are used), and quantizing.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "quant/weight.h"

namespace slip {

// Fills scales f32 [ceil(out / 128), ceil(in / 128)] of `into` from "weight_scale_inv", which is
// stored as bf16, f16 or f32 and multiplies, whatever its name says. Refuses NaN and infinity.
Status read_fp8_scales(std::span<const std::byte> stored, DType stored_type, const Weight& into);

// Refuses the codes 0x7f and 0xff, which are NaN. `codes` is [out, in].
Status check_fp8_codes(std::span<const std::byte> codes, int64_t in);

// A plain f32, bf16 or f16 weight into rows [first_row, first_row + from.info.out) of a plain
// fp8_block weight; both ends lie between blocks, or at the last row. As published files are made:
// scale = max|block| / 448 rounded to bf16, codes are made with the rounded scale. A block of zeros
// has scale 1. Refuses NaN and infinity.
Status quantize_fp8_blocks(const Weight& from, const Weight& into, int64_t first_row);

}  // namespace slip
