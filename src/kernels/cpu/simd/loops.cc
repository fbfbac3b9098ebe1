#include "kernels/cpu/simd/loops.h"

#include "base/check.h"
#if defined(__x86_64__)
#include "kernels/cpu/simd/tiles_amx.h"
#endif

namespace slip {

// For activations of one and of two bytes.
extern const Loops kLoops_portable[2];
#if defined(__x86_64__)
extern const Loops kLoops_avx2[2];
extern const Loops kLoops_avx512[2];
#elif defined(__aarch64__)
extern const Loops kLoops_neon[2];
extern const Loops kLoops_i8mm[2];
#endif

const Loops& loops_for(Isa isa, int activation_bytes) {
  check(activation_bytes == 1 || activation_bytes == 2, "activations of ", activation_bytes,
        " bytes");
  const int index = activation_bytes - 1;
  switch (isa) {
    case Isa::portable: return kLoops_portable[index];
#if defined(__x86_64__)
    case Isa::avx2: return kLoops_avx2[index];
    case Isa::avx512: return kLoops_avx512[index];
    case Isa::amx: {
      static const Loops loops[2] = {amx_loops(1), amx_loops(2)};
      return loops[index];
    }
    case Isa::neon:
    case Isa::i8mm: break;
#elif defined(__aarch64__)
    case Isa::neon: return kLoops_neon[index];
    case Isa::i8mm: return kLoops_i8mm[index];
    case Isa::avx2:
    case Isa::avx512:
    case Isa::amx: break;
#else
    case Isa::avx2:
    case Isa::avx512:
    case Isa::amx:
    case Isa::neon:
    case Isa::i8mm: break;
#endif
  }
  unreachable("Isa that this build lacks");
}

}  // namespace slip
