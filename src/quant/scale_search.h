// The scale of a group of int4 weights: of either sign, with the least squared error. The full
// range -8 .. 7 is used, so a scale and its negative round differently.
//
// The rule: candidates are +-peak / d with peak = the largest magnitude and d = 5.5,
// 5.58, ... 10.46, each rounded to f16; the first of the best ones is then improved by least
// squares for its codes, up to three times. Errors are sums in double.
#pragma once

#include <cstdint>
#include <span>

namespace slip {

// As stored: f16 bits. Values are finite. Infinity if the weights are too large for any f16 scale.
uint16_t best_int4_scale(std::span<const float> group);

// The nearest f16 number, at least 1e-5 in magnitude: smaller scales would be mostly rounding.
double int4_scale_as_stored(double scale);

}  // namespace slip
