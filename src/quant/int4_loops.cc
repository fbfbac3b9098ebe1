#include "quant/int4_loops.h"

#include "base/cpu.h"

namespace slip {

const Int4Loops& int4_loops() {
#if defined(__x86_64__)
  if (cpu_has_avx512()) return kAvx512Int4Loops;
  if (cpu_has_avx2()) return kAvx2Int4Loops;
#endif
  return kPortableInt4Loops;
}

}  // namespace slip
