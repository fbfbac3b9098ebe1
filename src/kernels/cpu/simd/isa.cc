#include "kernels/cpu/simd/isa.h"

#include "base/check.h"

namespace slip {

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::portable: return "portable";
    case Isa::avx2: return "AVX2";
    case Isa::avx512: return "AVX-512 VNNI";
  }
  unreachable("Isa");
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
  if (avx512) isas.push_back(Isa::avx512);
  if (avx2) isas.push_back(Isa::avx2);
#endif
  isas.push_back(Isa::portable);
  return isas;
}

}  // namespace slip
