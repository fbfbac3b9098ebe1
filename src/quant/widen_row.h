// Rows of 16- and 32-bit weights as floats: what quantizers and embeddings read.
#pragma once

#include <cstdint>
#include <span>

#include "quant/weight.h"

namespace slip {

// f32, bf16 or f16: values that were not quantized.
bool is_plain_float(WeightFormat format);

// Row `row` of a plain f32, bf16 or f16 weight; exact. `values` has as many as the weight inputs.
void widen_row(const Weight& weight, int64_t row, std::span<float> values);

// The largest magnitude; infinity or NaN if there is one among the values.
float largest_magnitude(std::span<const float> values);

}  // namespace slip
