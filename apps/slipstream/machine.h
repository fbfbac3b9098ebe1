// What machine this is, for benchmarks and doctor.
#pragma once

#include "base/json.h"

namespace slip {

// {"cpu": ..., "cores": ..., "memory_bytes": ..., "kernel": ...}
JsonObject describe_machine();

}  // namespace slip
