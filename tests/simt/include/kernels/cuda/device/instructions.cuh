// The instructions of src/kernels/cuda/device/instructions.cuh, for tests on a CPU. What each does
// is said there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/number_formats.h"
#include "tests/simt/matrix_products.h"
#include "tests/simt/warps.h"

namespace slip {

// Kernels run one after the other.
inline void wait_for_inputs() {}
inline void let_next_begin() {}

using simt::launch_memory;
inline void sync_first_threads(int threads) { simt::sync_some(threads); }

inline uint32_t count_arrival(uint32_t& counter) { return counter++; }

inline uint4 load_stream(const void* p) { return *static_cast<const uint4*>(p); }
inline uint2 load_stream_half(const void* p) { return *static_cast<const uint2*>(p); }
inline void prefetch_line(const void*) {}
inline void bring_line(const void* p) {
  [[maybe_unused]] const volatile uint32_t word = *static_cast<const uint32_t*>(p);
}

inline void copy_16_async(void* shared, const void* global) {
  simt::copy_later(shared, global, 16);
}
inline void copy_piece_async(void* shared, const void* global) {
  simt::copy_later(shared, global, 16);
}
inline void copy_4_async(void* shared, const void* global) { simt::copy_later(shared, global, 4); }
inline void end_copy_group() { simt::end_copy_group(); }
template <int kGroups>
void wait_for_copies() {
  simt::wait_for_copies(kGroups);
}

inline void mma_f16(float (&sums)[4], const uint32_t (&w)[4], uint32_t b0, uint32_t b1) {
  simt::multiply(sums, {w[0], w[1], w[2], w[3], b0, b1}, simt::products_of_f16);
}
inline void mma_bf16(float (&sums)[4], const uint32_t (&w)[4], uint32_t b0, uint32_t b1) {
  simt::multiply(sums, {w[0], w[1], w[2], w[3], b0, b1}, simt::products_of_bf16);
}
inline void mma_bytes(int (&sums)[4], uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3,
                      uint32_t b0, uint32_t b1) {
  simt::multiply(sums, {w0, w1, w2, w3, b0, b1}, simt::products_of_bytes);
}

inline uint32_t masked_or(uint32_t a, uint32_t mask, uint32_t bits) { return (a & mask) | bits; }
inline float reciprocal_fast(float x) { return 1.0f / x; }
inline float exp2_fast(float x) { return std::exp2(x); }
inline uint32_t saturated_halves(float low, float high) {
  const auto half = [](float x) {
    return std::isnan(x) ? uint32_t{0x7fff} : uint32_t{float_to_f16(std::clamp(x, -65504.0f, 65504.0f))};
  };
  return half(low) | half(high) << 16;
}

}  // namespace slip
