// `run` without a chat: one answer, or only the memory plan.
#pragma once

#include <string>

#include "slipstream/run/options.h"

namespace slip {

// `text` is not looked at when the options name a file of ids. Returns the exit status.
Result<int> answer_once(const RunOptions& options, const std::string& text,
                        const Terminal& terminal);

// What loading the model would take.
Result<int> print_plan(const RunOptions& options);

}  // namespace slip
