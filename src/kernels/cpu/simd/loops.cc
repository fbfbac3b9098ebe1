#include "kernels/cpu/simd/loops.h"

#include "base/check.h"

namespace slip {

extern const Loops kLoops_portable;
#if defined(__x86_64__)
extern const Loops kLoops_avx2;
extern const Loops kLoops_avx512;
#endif

const Loops& loops_for(Isa isa) {
  switch (isa) {
    case Isa::portable: return kLoops_portable;
#if defined(__x86_64__)
    case Isa::avx2: return kLoops_avx2;
    case Isa::avx512: return kLoops_avx512;
#else
    case Isa::avx2:
    case Isa::avx512: break;
#endif
  }
  unreachable("Isa that this build lacks");
}

}  // namespace slip
