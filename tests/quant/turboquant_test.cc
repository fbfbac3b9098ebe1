// The codec bit for bit: golden vectors, invariances, awkward inputs.
#include "quant/turboquant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "quant/number_formats.h"
#include "tests/quant/turboquant_cases.h"

namespace slip {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

uint32_t crc32(std::span<const uint8_t> bytes) {
  uint32_t crc = ~0u;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

// The published figures are those of a scale that is not rounded to bf16.
double exact_scale(const std::vector<float>& t, const Coded& coded) {
  return dot(t, t) / dot(t, coded.levels);
}
double exact_error(const std::vector<float>& t, const Coded& coded) {
  std::vector<double> decoded = coded.levels;
  for (double& value : decoded) value *= exact_scale(t, coded);
  return relative_error(t, decoded);
}

std::vector<float> golden_input(size_t dim) {
  std::vector<double> x;
  for (size_t j = 1; j <= dim; ++j) {
    const double n = double(j);
    x.push_back(std::sin(0.37 * n) + 0.25 * std::cos(1.7 * n * n));
  }
  turbo_rotate(x, KvSide::keys);
  return {x.begin(), x.end()};
}

TEST(TurboEncode, GoldenInputsRotateAsPublished) {
  const auto small = golden_input(128), large = golden_input(256);
  EXPECT_NEAR(std::sqrt(dot(small, small)), 8.170829578, 1e-6);
  EXPECT_NEAR(std::sqrt(dot(large, large)), 11.453813768, 1e-6);
  const double first_small[] = {0.72870181, -0.55092043, 0.42418353, -1.06473922};
  const double first_large[] = {1.4252813, -0.29528166, -0.28050927, -0.27988962};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(small[i], first_small[i], 1e-7);
    EXPECT_NEAR(large[i], first_large[i], 1e-7);
  }
}

TEST(TurboEncode, GoldenVectors) {
  const struct {
    size_t dim;
    int bits;
    std::vector<int> first;
    int sum;
    uint32_t crc;
    double scale;
    uint16_t scale_bits;
    double error;
  } cases[] = {
      {128,
       2,
       {3, 1, 2, 0, 2, 2, 3, 1, 0, 2, 1, 2, 0, 1, 2, 1},
       200,
       0x4fa6c4e8,
       0.0176610498,
       0x3c91,
       0.145812},
      {128,
       3,
       {5, 2, 5, 1, 4, 5, 6, 3, 1, 5, 2, 4, 0, 3, 5, 2},
       461,
       0x79459479,
       0.0185264834,
       0x3c98,
       0.039628},
      {128,
       4,
       {11, 5, 10, 2, 8, 10, 13, 6, 3, 10, 4, 8, 0, 7, 11, 4},
       981,
       0x9d6a0242,
       0.0211902372,
       0x3cae,
       0.007978},
      {256,
       2,
       {3, 1, 1, 1, 2, 2, 3, 2, 0, 2, 1, 2, 0, 2, 2, 0},
       389,
       0xeae0fe5f,
       0.0166966968,
       0x3c89,
       0.102251},
      {256,
       3,
       {7, 3, 3, 3, 5, 5, 7, 4, 1, 4, 3, 4, 0, 5, 5, 0},
       905,
       0xf29e52c8,
       0.0174450457,
       0x3c8f,
       0.029707},
      {256,
       4,
       {14, 6, 6, 6, 10, 11, 14, 9, 2, 8, 7, 9, 0, 11, 11, 1},
       1943,
       0xcd4d8d09,
       0.0204315169,
       0x3ca7,
       0.008390},
  };
  for (const auto& golden : cases) {
    SCOPED_TRACE(testing::Message() << golden.dim << " values, " << golden.bits << " bits");
    const std::vector<float> t = golden_input(golden.dim);
    const Coded coded = code(t, golden.bits);
    for (size_t i = 0; i < golden.first.size(); ++i)
      EXPECT_EQ(coded.indices[i], golden.first[i]) << i;
    EXPECT_EQ(std::accumulate(coded.indices.begin(), coded.indices.end(), 0), golden.sum);
    EXPECT_EQ(crc32(coded.indices), golden.crc);
    EXPECT_EQ(coded.scale, bf16_to_float(golden.scale_bits));
    EXPECT_NEAR(exact_scale(t, coded), golden.scale, 1e-9);
    EXPECT_NEAR(exact_error(t, coded), golden.error, 1e-6);
  }
}

// All values equal: the worst input for a plain Hadamard matrix, which turns it into one spike.
TEST(TurboEncode, SignsSaveTheAllOnesVector) {
  const struct {
    size_t dim;
    int bits;
    double error, without_signs;
  } cases[] = {{128, 2, 0.10923, 11.9}, {128, 3, 0.03264, 1.64}, {128, 4, 0.00390, 0.345},
               {256, 2, 0.13846, 23.8}, {256, 3, 0.04207, 3.29}, {256, 4, 0.01215, 0.692}};
  for (const auto& expected : cases) {
    SCOPED_TRACE(testing::Message() << expected.dim << " values, " << expected.bits << " bits");
    const std::vector<float> t = rotated(std::vector<float>(expected.dim, 1.0f));
    EXPECT_NEAR(exact_error(t, code(t, expected.bits)), expected.error, 1e-5);
    const auto signs = turbo_signs(KvSide::keys).first(expected.dim);
    const std::vector<float> spike = rotated({signs.begin(), signs.end()});  // signs cancel
    EXPECT_NEAR(exact_error(spike, code(spike, expected.bits)), expected.without_signs,
                0.005 * expected.without_signs);
  }
}

TEST(TurboEncode, PowersOfTwoChangeTheScaleAlone) {
  Gaussian random(2);
  for (const int bits : {2, 3, 4}) {
    const std::vector<float> t = rotated(random.vector(256));
    const Coded coded = code(t, bits);
    for (const int power : {-40, -3, 1, 60}) {
      std::vector<float> scaled = t;
      for (float& value : scaled) value = std::ldexp(value, power);
      const Coded other = code(scaled, bits);
      EXPECT_EQ(other.indices, coded.indices);
      EXPECT_EQ(other.scale, std::ldexp(coded.scale, power));
    }
  }
}

TEST(TurboEncode, NegationMirrorsTheIndices) {
  Gaussian random(3);
  for (const int bits : {2, 3, 4}) {
    std::vector<float> t = rotated(random.vector(256));
    const Coded coded = code(t, bits);
    for (float& value : t) value = -value;
    const Coded mirrored = code(t, bits);
    EXPECT_EQ(mirrored.scale, coded.scale);
    for (size_t i = 0; i < t.size(); ++i)
      EXPECT_EQ(mirrored.indices[i], (1 << bits) - 1 - coded.indices[i]);
  }
}

TEST(TurboEncode, AThresholdBelongsToTheLevelAbove) {
  const std::vector<float> t = {0, -0.0f, 2, 2, 0, 0, 0, 0};
  std::vector<uint8_t> indices(8);
  turbo_encode(t, 2, indices);
  EXPECT_THAT(indices, ElementsAre(2, 2, 3, 3, 2, 2, 2, 2));
}

TEST(TurboEncode, WhatCannotBeCodedIsZero) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {0.0f, 1e-30f, std::nanf(""), infinity, -infinity}) {
    std::vector<float> t(8, bad == 0 || std::fabs(bad) < 1 ? bad : 1.0f);
    t[3] = bad;
    for (const int bits : {2, 3, 4}) {
      const Coded coded = code(t, bits);
      EXPECT_EQ(coded.scale, 0.0f);
      EXPECT_THAT(coded.indices, Each(1 << (bits - 1)));
    }
    std::vector<int8_t> codes(t.size(), 55);
    EXPECT_EQ(turbo_encode_int8(t, codes), 0.0f);
    EXPECT_THAT(codes, Each(0));
  }
}

TEST(TurboEncode, LargestFloatsDoNotOverflow) {
  const std::vector<float> t(8, std::numeric_limits<float>::max());
  for (const int bits : {2, 3, 4})
    EXPECT_LT(relative_error(t, code(t, bits).decoded), 1e-4) << bits;  // all alike: scale fits
}

TEST(TurboEncodeInt8, RoundsHalfToEven) {
  const std::vector<float> t = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -127, 0.501f};
  std::vector<int8_t> codes(t.size());
  EXPECT_EQ(turbo_encode_int8(t, codes), 1.0f);
  EXPECT_THAT(codes, ElementsAre(127, 0, 2, 2, 0, -2, -127, 1));
}

// A scale halfway between two bf16 goes to the even one below: nothing comes closer to code 128.
TEST(TurboEncodeInt8, LargestCodeIs127) {
  const float largest = 127 * (1 + 0x1p-8f);
  std::vector<int8_t> codes(2);
  EXPECT_EQ(turbo_encode_int8(std::vector<float>{largest, -largest}, codes), 1.0f);
  EXPECT_THAT(codes, ElementsAre(127, -127));
}

TEST(TurboEncodeInt8, IsWithinHalfAStep) {
  Gaussian random(4);
  for (int repeat = 0; repeat < 1000; ++repeat) {
    const std::vector<float> t = rotated(random.vector(64), KvSide::values);
    std::vector<int8_t> codes(t.size());
    const float scale = turbo_encode_int8(t, codes);
    EXPECT_EQ(bf16_to_float(float_to_bf16(scale)), scale);
    for (size_t i = 0; i < t.size(); ++i) {
      EXPECT_GE(codes[i], -127);
      EXPECT_LE(std::fabs(double(t[i]) - double(scale) * codes[i]), double(scale) * 0.50001);
    }
  }
}

}  // namespace
}  // namespace slip
