#include "quant/number_formats.h"

#include <gtest/gtest.h>

#include <limits>

namespace slip {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The value of a 16-bit float by its definition, in doubles.
double by_definition(uint32_t bits, int mantissa_bits, int exponent_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double mantissa = double(bits & ((1u << mantissa_bits) - 1)) / double(1 << mantissa_bits);
  const int exponent = int(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double sign = bits >> (mantissa_bits + exponent_bits) & 1 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias);
  return sign * std::ldexp(1 + mantissa, exponent - bias);
}

TEST(F16, EveryCodeHasItsDefinedValueAndComesBack) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const float value = f16_to_float(uint16_t(code));
    if ((code & 0x7c00) == 0x7c00) {
      if (code & 0x3ff) {
        EXPECT_TRUE(std::isnan(value)) << code;
        EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(value)))) << code;
        continue;
      }
      EXPECT_EQ(value, code & 0x8000 ? -kInfinity : kInfinity);
    } else {
      ASSERT_EQ(double(value), by_definition(code, 10, 5)) << code;
    }
    ASSERT_EQ(float_to_f16(value), code);  // keeps the sign of zero
  }
}

TEST(Bf16, EveryCodeHasItsDefinedValueAndComesBack) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const float value = bf16_to_float(uint16_t(code));
    if ((code & 0x7f80) == 0x7f80) {
      if (code & 0x7f) {
        EXPECT_TRUE(std::isnan(value)) << code;
        EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(value)))) << code;
        continue;
      }
      EXPECT_EQ(value, code & 0x8000 ? -kInfinity : kInfinity);
    } else {
      ASSERT_EQ(double(value), by_definition(code, 7, 8)) << code;
    }
    ASSERT_EQ(float_to_bf16(value), code);
  }
}

TEST(Fp8, EveryCodeHasItsDefinedValueAndComesBack) {
  for (uint32_t code = 0; code < 256; ++code) {
    const float value = fp8_to_float(uint8_t(code));
    EXPECT_EQ(fp8_is_nan(uint8_t(code)), code == 0x7f || code == 0xff);
    if (fp8_is_nan(uint8_t(code))) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(fp8_is_nan(float_to_fp8(value)));
      continue;
    }
    ASSERT_EQ(double(value), by_definition(code, 3, 4)) << code;
    ASSERT_EQ(float_to_fp8(value), code);
  }
}

TEST(Fp8, PublishedValues) {
  EXPECT_EQ(fp8_to_float(0x38), 1.0f);
  EXPECT_EQ(fp8_to_float(0x7e), 448.0f);
  EXPECT_EQ(fp8_to_float(0x01), 0x1p-9f);
  EXPECT_EQ(fp8_to_float(0xb8), -1.0f);
}

// Between two neighbours: the middle goes to the even code, a hair off it to the nearer one.
template <class Encode, class Decode>
void expect_ties_to_even(uint32_t finite_codes, Encode encode, Decode decode) {
  for (uint32_t code = 0; code + 1 < finite_codes; ++code) {
    const float low = decode(code), high = decode(code + 1);
    const float middle = low + (high - low) / 2;  // exact: one more mantissa bit
    const uint32_t even = code % 2 == 0 ? code : code + 1;
    ASSERT_EQ(encode(middle), even) << code;
    ASSERT_EQ(encode(std::nextafter(middle, 0.0f)), code) << code;
    ASSERT_EQ(encode(std::nextafter(middle, kInfinity)), code + 1) << code;
    const uint32_t sign = decode(0) == 0 ? (finite_codes > 256 ? 0x8000 : 0x80) : 0;
    ASSERT_EQ(encode(-middle), even | sign) << code;
  }
}

TEST(NumberFormats, TiesGoToEven) {
  expect_ties_to_even(
      0x7c00, [](float f) { return uint32_t(float_to_f16(f)); },
      [](uint32_t c) { return f16_to_float(uint16_t(c)); });
  expect_ties_to_even(
      0x7f80, [](float f) { return uint32_t(float_to_bf16(f)); },
      [](uint32_t c) { return bf16_to_float(uint16_t(c)); });
  expect_ties_to_even(
      0x7f, [](float f) { return uint32_t(float_to_fp8(f)); },
      [](uint32_t c) { return fp8_to_float(uint8_t(c)); });
}

TEST(NumberFormats, Overflow) {
  EXPECT_EQ(float_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_f16(-1e30f), 0xfc00);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(float_to_fp8(1e30f), 0x7e);
  EXPECT_EQ(float_to_fp8(-kInfinity), 0xfe);
}

}  // namespace
}  // namespace slip
