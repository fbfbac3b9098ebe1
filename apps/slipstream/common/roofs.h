// What the machine can do, measured: the roofs that speeds are compared with.
#pragma once

#include "slipstream/common/backend.h"

namespace slip {

struct Roofs {
  double read_bytes_per_second = 0;  // from memory, by all of the backend
  // By the kernels' own integer dot product, from registers; infinite where it is never the limit.
  double int8_products_per_second = 0;
};

// The best of several passes; about `seconds` in all.
Roofs cpu_roofs(ThreadPool& pool, Isa isa, double seconds);
Roofs measure_roofs(const Backend& backend, double seconds);

// Memory speed drifts on shared machines: of a measurement before and one behind what is compared
// with it, the better is the honest roof.
Roofs better_of(const Roofs& before, const Roofs& after);

// Only the memory's speed, and in a moment (about 50 ms): for the line under an answer.
double glance_at_bandwidth(const Backend& backend);

}  // namespace slip
