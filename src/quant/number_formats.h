// Scalar definitions of the 16- and 8-bit number formats. Kernels may be faster; they may not
// differ.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace slip {

inline float bf16_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

// Round to nearest, ties to even; NaN stays NaN.
inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return uint16_t((bits >> 16) | 0x40);
  return uint16_t((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

inline float f16_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 31;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) {  // zero and subnormals: mantissa * 2^-24
    const float magnitude = float(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

// Round to nearest, ties to even; overflow gives infinity.
inline uint16_t float_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = uint16_t((bits >> 16) & 0x8000);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return uint16_t(sign | 0x7e00);
  if (magnitude >= 65520.0f) return uint16_t(sign | 0x7c00);
  if (magnitude < 0x1p-14f)  // subnormal: a multiple of 2^-24, rounded by the host's float unit
    return uint16_t(sign | uint16_t(std::nearbyint(magnitude * 0x1p24f)));
  const uint32_t magnitude_bits = bits & 0x7fffffffu;
  const uint32_t rounded = magnitude_bits + 0xfffu + ((magnitude_bits >> 13) & 1);
  return uint16_t(sign | uint16_t((rounded - (112u << 23)) >> 13));
}

// e4m3fn: bias 7, no infinities, 0x7f and 0xff are NaN, largest magnitude 448.
inline constexpr float kFp8Max = 448.0f;

inline float fp8_to_float(uint8_t bits) {
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  const int exponent = (bits >> 3) & 15;
  const int mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return std::nanf("");
  if (exponent == 0) return sign * float(mantissa) * 0x1p-9f;
  return sign * std::ldexp(1.0f + float(mantissa) / 8.0f, exponent - 7);
}

inline bool fp8_is_nan(uint8_t bits) { return (bits & 0x7f) == 0x7f; }

// Round to nearest, ties to even; clamps to +-448.
inline uint8_t float_to_fp8(float value) {
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return uint8_t(sign | 0x7f);
  const float magnitude = std::fmin(std::fabs(value), kFp8Max);
  if (magnitude < 0x1p-6f) return uint8_t(sign | uint8_t(std::nearbyint(magnitude * 0x1p9f)));
  const uint32_t bits = std::bit_cast<uint32_t>(magnitude);
  const uint32_t rounded = bits + 0x7ffffu + ((bits >> 20) & 1);
  return uint8_t(sign | uint8_t((rounded - (120u << 23)) >> 20));
}

}  // namespace slip
