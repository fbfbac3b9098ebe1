// What the machine can do, measured: the roofs that speeds are compared with.
#pragma once

#include "base/threads.h"
#include "kernels/cpu/simd/isa.h"

namespace slip {

struct Roofs {
  double read_bytes_per_second = 0;     // from memory, all threads of the pool together
  double int8_products_per_second = 0;  // by the kernels' own integer dot product, from registers
};

// The best of several passes; about `seconds` in all.
Roofs measure_roofs(ThreadPool& pool, Isa isa, double seconds);

// Only the memory's speed, and in a moment (about 50 ms): for the line under an answer.
double glance_at_bandwidth(ThreadPool& pool, Isa isa);

}  // namespace slip
