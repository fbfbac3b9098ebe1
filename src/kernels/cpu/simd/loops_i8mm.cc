#include "kernels/cpu/simd/dot_i8mm.h"
#include "kernels/cpu/simd/int16_neon.h"
// The loops below are written over the vectors and dot products above.
#include "kernels/cpu/simd/loops_linear.h"
#include "kernels/cpu/simd/loops_math.h"
// These use loops_math.h.
#include "kernels/cpu/simd/loops_attention.h"
#include "kernels/cpu/simd/loops_delta.h"
#include "kernels/cpu/simd/loops_turbo.h"
// Uses loops_attention.h and loops_turbo.h.
#include "kernels/cpu/simd/loops_kv_codes.h"
#include "kernels/cpu/simd/loops_table.h"

namespace slip {

extern const Loops kLoops_i8mm[2];
const Loops kLoops_i8mm[2] = {make_loops<1>(Isa::i8mm), make_loops<2>(Isa::i8mm)};

}  // namespace slip
