// Floats in fours: one access of 16 bytes where addresses allow it. Which four belong together does
// not depend on that, so neither do the bits of a sum.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace slip {

inline constexpr int kQuad = 4;

// Whether rows of `dim` floats, in all of these tensors, can be read and written in fours.
inline bool rows_of_quads(int64_t dim, std::initializer_list<const void*> tensors) {
  for (const void* tensor : tensors)
    if (reinterpret_cast<uintptr_t>(tensor) % sizeof(float4) != 0) return false;
  return dim % kQuad == 0;
}

// Values [i, i + 4) of a row of `dim`; zero past its end.
template <bool kAligned>
__device__ __forceinline__ float4 load_quad(const float* row, int64_t i, int64_t dim) {
  if constexpr (kAligned)
    return i < dim ? *reinterpret_cast<const float4*>(row + i) : make_float4(0, 0, 0, 0);
  const auto value = [&](int j) { return i + j < dim ? row[i + j] : 0.0f; };
  return make_float4(value(0), value(1), value(2), value(3));
}

template <bool kAligned>
__device__ __forceinline__ void store_quad(float* row, int64_t i, int64_t dim, float4 x) {
  if constexpr (kAligned) {
    if (i < dim) *reinterpret_cast<float4*>(row + i) = x;
  } else {
    if (i < dim) row[i] = x.x;
    if (i + 1 < dim) row[i + 1] = x.y;
    if (i + 2 < dim) row[i + 2] = x.z;
    if (i + 3 < dim) row[i + 3] = x.w;
  }
}

}  // namespace slip
