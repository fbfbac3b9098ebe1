#pragma once

#include "base/result.h"
#include "slipstream/serve/options.h"

namespace slip {

// Until a signal says that it is enough. The exit status, or why it could not begin.
Result<int> serve(const ServeOptions& options);

}  // namespace slip
