// Values of the size of weights.
#pragma once

#include <random>
#include <vector>

#include "quant/number_formats.h"

namespace slip {

// Exact in bf16.
inline std::vector<float> random_values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = bf16_to_float(float_to_bf16(0.02f * normal(random)));
  return values;
}

}  // namespace slip
