// Quantizing to int8 with one scale per row; used for the language-model head, the largest single
// matrix of most models.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "quant/weight.h"

namespace slip {

// codes[i] = row[i] / scale, rounded half to even, in [-127, 127]; returns scale = max|row| / 127.
// A row of zeros has scale 0. Refuses NaN and infinity.
Result<float> quantize_int8_row(std::span<const float> row, std::span<int8_t> codes);

// A plain f32, bf16 or f16 weight into rows [first_row, first_row + from.info.out) of a plain
// int8_row weight: a caller may hold few rows at a time, or share them among threads.
Status quantize_int8_rows(const Weight& from, const Weight& into, int64_t first_row);

}  // namespace slip
