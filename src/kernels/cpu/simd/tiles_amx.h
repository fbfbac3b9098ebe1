// Linear layers of many rows on AMX: the integer sums of 16 rows x 16 outputs are one instruction
// per 64 inputs. Everything else, and few rows, is AVX-512's.
#pragma once

#include "kernels/cpu/simd/loops.h"

namespace slip {

// The loops of AVX-512 for activations of so many bytes, with these in their place.
Loops amx_loops(int activation_bytes);

}  // namespace slip
