// What machine this is, for benchmarks and doctor.
#pragma once

#include "base/json.h"
#include "slipstream/common/roofs.h"

namespace slip {

// {"cpu": ..., "cores": ..., "memory_bytes": ..., "kernel": ...}
JsonObject describe_machine();

// With what of it a backend uses, and how fast that is: {"threads": ..., "instruction_set": ...,
// "read_bandwidth_gb_per_s": ..., "int8_products_per_s": ... where that is a limit}.
JsonObject describe_machine(const Backend& backend, const Roofs& roofs);

}  // namespace slip
