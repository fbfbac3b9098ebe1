// TurboQuant: a vector as a rotation, a scale and a few bits per value. The definition; kernels may
// be faster, they may not differ.
//
//   t = H diag(s) x / sqrt(d)      randomised Hadamard; every value of t is nearly Gaussian
//   y = kappa sqrt(d) t / |t|      in units of the code book
//   index = thresholds <= y        the nearest level c (Lloyd-Max, small integers)
//   scale = |t|^2 / <t, c>         so that <x, decoded> = |x|^2: inner products are unbiased
//
// Attention needs no inverse: <q, x> = scale * <H diag(s) q / sqrt(d), c>.
#pragma once

#include <cstdint>
#include <span>

namespace slip {

// Keys and values are rotated with different signs.
enum class KvSide : uint8_t { keys, values };

// The largest head size; sizes are powers of two.
inline constexpr int64_t kMaxTurboDim = 1024;
constexpr bool turbo_dim_ok(int64_t dim) {
  return dim >= 2 && dim <= kMaxTurboDim && (dim & (dim - 1)) == 0;
}

// +1 or -1 for each of kMaxTurboDim dimensions.
std::span<const float> turbo_signs(KvSide side);

// x <- H diag(signs) x / sqrt(x.size()), and back.
void turbo_rotate(std::span<float> x, KvSide side);
void turbo_unrotate(std::span<float> x, KvSide side);
void turbo_rotate(std::span<double> x, KvSide side);
void turbo_unrotate(std::span<double> x, KvSide side);

// The code book of 2, 3 or 4 bits: 2^bits levels, rising, and the thresholds between them.
struct TurboBook {
  std::span<const int8_t> levels;
  std::span<const float> thresholds;
  float kappa;  // levels per standard deviation
};
const TurboBook& turbo_book(int bits);

// Codes of a rotated vector: indices into the code book's levels, one byte each. Returns the scale,
// already rounded to bf16. A vector shorter than 1e-20 (or with NaN or infinity in it) has scale 0.
float turbo_encode(std::span<const float> rotated, int bits, std::span<uint8_t> indices);

// The same for 8 bits: codes in [-127, 127], value = scale * code.
float turbo_encode_int8(std::span<const float> rotated, std::span<int8_t> codes);

}  // namespace slip
