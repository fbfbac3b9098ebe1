// The upper half of a float, for tests on a CPU.
#pragma once

#include <cuda_runtime.h>

#include "quant/number_formats.h"

struct __nv_bfloat16 {
  uint16_t bits;
};

inline __nv_bfloat16 __float2bfloat16_rn(float x) { return {slip::float_to_bf16(x)}; }
inline float __bfloat162float(__nv_bfloat16 x) { return slip::bf16_to_float(x.bits); }
inline uint16_t __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
