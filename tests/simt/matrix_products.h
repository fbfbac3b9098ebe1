// Products of a warp's registers as tensor cores make them: exact, added up in double, rounded
// once.
#pragma once

#include "tests/simt/warps.h"

namespace simt {

// A lane's registers: four of weights, two of activations.
struct Operands {
  uint32_t words[6];
};

// Products of 16 outputs and 8 columns, where the four sums of lane l are (l / 4, 2 (l % 4) + {0,
// 1}) and the same of l / 4 + 8.
void products_of_f16(const Payload* in, Payload* out, uint32_t present);
void products_of_bf16(const Payload* in, Payload* out, uint32_t present);
void products_of_bytes(const Payload* in, Payload* out, uint32_t present);

// The sums come as doubles or integers and are added to where the lane has them.
void multiply(float (&sums)[4], const Operands& operands, WarpOperation products);
void multiply(int (&sums)[4], const Operands& operands, WarpOperation products);

}  // namespace simt
