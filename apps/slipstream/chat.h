// `run` as a chat on a terminal.
#pragma once

#include "run_options.h"

namespace slip {

// Until the person leaves. Returns the exit status.
Result<int> chat(const RunOptions& options, const Terminal& terminal);

}  // namespace slip
