#include "kernels/cpu/simd/isa.h"

#include "base/check.h"
#include "base/cpu.h"

namespace slip {

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::portable: return "portable";
    case Isa::avx2: return "AVX2";
    case Isa::avx512: return "AVX-512 VNNI";
    case Isa::amx: return "AMX, AVX-512 VNNI";
    case Isa::neon: return "NEON dotprod";
    case Isa::i8mm: return "NEON i8mm";
  }
  unreachable("Isa");
}

const char* id_of(Isa isa) {
  switch (isa) {
    case Isa::portable: return "portable";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
    case Isa::amx: return "amx";
    case Isa::neon: return "neon";
    case Isa::i8mm: return "i8mm";
  }
  unreachable("Isa");
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  if (cpu_has_amx_int8()) isas.push_back(Isa::amx);
  if (cpu_has_avx512_vnni()) isas.push_back(Isa::avx512);
  if (cpu_has_avx2()) isas.push_back(Isa::avx2);
  if (cpu_has_neon_i8mm()) isas.push_back(Isa::i8mm);
  if (cpu_has_neon_dotprod()) isas.push_back(Isa::neon);
  isas.push_back(Isa::portable);
  return isas;
}

}  // namespace slip
