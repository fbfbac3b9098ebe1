// The loops of AMX with registers that are arrays: tiles_amx.cc, compiled once more.
#pragma once

#include "kernels/cpu/simd/loops.h"

namespace slip {

// Needs AVX-512 with VNNI.
Loops emulated_amx_loops(int activation_bytes);

}  // namespace slip
