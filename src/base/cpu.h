// Which instructions this machine's processor has, in the sets that our loops are compiled for.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace slip {

#if defined(__x86_64__)
// Asked of the processor itself: clang 14 knows no "f16c". Once, since a virtual machine traps it.
inline bool cpu_has_f16c() {
  static const bool has = [] {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  }();
  return has;
}
#endif

inline bool cpu_has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && cpu_has_f16c();
#else
  return false;
#endif
}

// A virtual machine may hide some of them.
inline bool cpu_has_avx512() {
#if defined(__x86_64__)
  return cpu_has_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq");
#else
  return false;
#endif
}

inline bool cpu_has_avx512_vnni() {
#if defined(__x86_64__)
  return cpu_has_avx512() && __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

// Products of tiles of bytes: Xeons since Sapphire Rapids. Linux saves the tile registers of those
// alone who have asked for them; threads that begin later have them as well.
inline bool cpu_has_amx_int8() {
#if defined(__x86_64__)
  static const bool has = [] {
    constexpr unsigned kTile = 1u << 24, kInt8 = 1u << 25;  // of leaf 7's edx
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return cpu_has_avx512_vnni() && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
           (edx & kTile) != 0 && (edx & kInt8) != 0 &&
           syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return has;
#else
  return false;
#endif
}

// NEON itself is part of every aarch64; products of four bytes came with Armv8.2 (Cortex-A76,
// Neoverse N1) and later.
inline bool cpu_has_neon_dotprod() {
#if defined(__aarch64__)
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
  return false;
#endif
}

// Products of small matrices of bytes: Neoverse N2, V1, V2, Cortex-X925 and others of Armv8.6.
inline bool cpu_has_neon_i8mm() {
#if defined(__aarch64__)
  return cpu_has_neon_dotprod() && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
#else
  return false;
#endif
}

}  // namespace slip
