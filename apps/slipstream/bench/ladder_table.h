// The ladder's figures as columns of text.
#pragma once

#include <string>
#include <vector>

#include "slipstream/bench/ladder_result.h"
#include "slipstream/common/text_table.h"

namespace slip {

// A line per rung. With `simulated`, every line says so.
std::string ladder_table(const std::vector<RungResult>& rungs, TableStyle style, bool simulated);

// "1.52x"
std::string describe_gain(double gain);

}  // namespace slip
