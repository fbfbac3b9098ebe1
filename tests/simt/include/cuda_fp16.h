// Floats of 16 bits, for tests on a CPU: each operation is done in double and rounded once.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "quant/number_formats.h"

struct __half {
  uint16_t bits;
};
struct alignas(4) __half2 {
  __half x, y;
};

inline __half __ushort_as_half(uint16_t bits) { return {bits}; }
inline float __half2float(__half x) {
  static const auto values = [] {
    std::vector<float> table(1 << 16);
    for (uint32_t bits = 0; bits < table.size(); ++bits)
      table[bits] = slip::f16_to_float(uint16_t(bits));
    return table;
  }();
  return values[x.bits];
}
inline __half __float2half_rn(float x) { return {slip::float_to_f16(x)}; }
inline __half __float2half(float x) { return __float2half_rn(x); }
inline float __low2float(__half2 x) { return __half2float(x.x); }
inline float __high2float(__half2 x) { return __half2float(x.y); }
inline float2 __half22float2(__half2 x) { return {__low2float(x), __high2float(x)}; }
inline __half2 __half2half2(__half x) { return {x, x}; }
inline __half2 __floats2half2_rn(float x, float y) {
  return {__float2half_rn(x), __float2half_rn(y)};
}
inline __half2 __hadd2(__half2 a, __half2 b) {
  return __floats2half2_rn(__low2float(a) + __low2float(b), __high2float(a) + __high2float(b));
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return __floats2half2_rn(std::fma(__low2float(a), __low2float(b), __low2float(c)),
                           std::fma(__high2float(a), __high2float(b), __high2float(c)));
}
