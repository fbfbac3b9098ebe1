// Numbers between bounds, as the digits that spell them.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "grammar/rules.h"

namespace slip {

// Both bounds belong to the range; they are at most kMaxIntegerDigits long.
ExprId integer_between(Rules& rules, int64_t min, int64_t max);

struct NumberBound {
  double value;
  bool exclusive = false;
};

// Without exponent, and with so few digits that a double tells the number from an excluded bound.
// Fails where a bound is too large for that.
Result<ExprId> number_between(Rules& rules, std::optional<NumberBound> min,
                              std::optional<NumberBound> max);

}  // namespace slip
