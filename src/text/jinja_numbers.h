// int(), float() and round() of Python.
#pragma once

#include <optional>
#include <string_view>

#include "text/jinja_value.h"

namespace slip::jinja {

// Nothing where Python would raise ValueError, or where the number has more than 127 bits.
std::optional<Int> parse_int(std::string_view text, Int base);
std::optional<double> parse_float(std::string_view text);

// To `digits` decimal places, ties to even, decided on the exact binary value.
double round_decimal(double value, int digits);

}  // namespace slip::jinja
