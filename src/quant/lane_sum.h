// The sum of a vector register, for loops that are compiled once per instruction set.
#pragma once

#include <cstddef>

namespace slip {

// By halves: one after the other, the additions would wait for each other longer than the products
// take. Internal linkage: a copy that the linker shared among files could be one with instructions
// that this machine lacks.
template <size_t kLanes>
static inline float sum_of(float (&lanes)[kLanes]) {
  for (size_t half = kLanes / 2; half > 0; half /= 2)
    for (size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

}  // namespace slip
