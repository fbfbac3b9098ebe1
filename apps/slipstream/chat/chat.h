// `run` as a chat on a terminal.
#pragma once

#include "slipstream/run/options.h"

namespace slip {

// Until the person leaves. Returns the exit status.
Result<int> chat(const RunOptions& options, const Terminal& terminal);

}  // namespace slip
