#include "quant/int4_loops.h"

namespace slip {

const Int4Loops& int4_loops() {
#if defined(__x86_64__)
  // All that the file is compiled for.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("fma"))
    return kAvx512Int4Loops;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kAvx2Int4Loops;
#endif
  return kPortableInt4Loops;
}

}  // namespace slip
