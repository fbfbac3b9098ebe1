// What has to hold of rules before they can be run.
#pragma once

#include <vector>

#include "base/result.h"
#include "grammar/rules.h"

namespace slip {

// [rules]: whether the empty text fits.
std::vector<bool> find_nullable_rules(const Rules& rules);

// No rule comes back to itself before a byte has been read.
Status check_recursion(const Rules& rules, const std::vector<bool>& nullable);

// Nothing that may be empty is counted: it would count in too many ways.
Status check_repetitions(const Rules& rules, const std::vector<bool>& nullable);

}  // namespace slip
