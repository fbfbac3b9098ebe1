// A row of a weight as doubles.
#pragma once

#include <span>

#include "quant/weight.h"

namespace slip {

// values[i] = weight_at(weight, row, i); the format is looked at once per row, because linear()
// decodes every weight it multiplies with.
void decode_row(const Weight& weight, int64_t row, std::span<double> values);

}  // namespace slip
