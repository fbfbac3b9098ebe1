#include "convert/descent_loops.h"

#include "base/cpu.h"

namespace slip {

const DescentLoops& descent_loops() {
#if defined(__x86_64__)
  if (cpu_has_avx512()) return kAvx512DescentLoops;
  if (cpu_has_avx2()) return kAvx2DescentLoops;
#endif
  return kPortableDescentLoops;
}

}  // namespace slip
