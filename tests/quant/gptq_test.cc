#include "quant/gptq.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "quant/number_formats.h"
#include "tensor/buffer.h"

namespace slip {
namespace {

using ::testing::HasSubstr;

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

// The tensors of one packed Linear, filled with random codes and scales.
struct Packed {
  int64_t in, out;
  int group;
  std::vector<uint32_t> qweight, qzeros;
  std::vector<uint16_t> scales;

  Packed(int64_t inputs, int64_t outputs, int per_scale, uint32_t zeros = 0x77777777)
      : in(inputs), out(outputs), group(per_scale) {
    std::mt19937 random(uint32_t(in * 31 + out * 7 + group));
    qweight.resize(size_t(in / 8 * out));
    for (uint32_t& word : qweight) word = uint32_t(random());
    scales.resize(size_t(in / group * out));
    for (uint16_t& scale : scales) do
        scale = uint16_t(random());
      while ((scale & 0x7c00) == 0x7c00);
    qzeros.assign(size_t(in / group * out / 8), zeros);
  }

  GptqTensors tensors() const { return {bytes_of(qweight), bytes_of(scales), bytes_of(qzeros)}; }
  WeightInfo info() const { return {WeightFormat::int4_group, out, in, group}; }

  // The index formula of the format.
  float at(int64_t n, int64_t k) const {
    const int code = int(qweight[size_t(k / 8 * out + n)] >> (4 * (k % 8)) & 15);
    return f16_to_float(scales[size_t(k / group * out + n)]) * float(code - 8);
  }
};

struct Unpacked {
  explicit Unpacked(const WeightInfo& info)
      : buffer(host_memory(), plain_bytes(info)), weight(plain_weight(info, buffer.data())) {}
  Buffer buffer;
  Weight weight;
};

std::string failure_of(const Status& status) { return status.ok() ? "" : status.failure().message; }

TEST(UnpackGptq, EqualsTheIndexFormula) {
  for (const int group : {32, 64, 128}) {
    for (const int64_t groups : {1, 2, 3, 5, 9}) {
      for (const int64_t out : {8, 16, 56, 64, 72, 128, 200}) {
        for (const uint32_t zeros : {0x77777777u, 0x88888888u}) {
          const Packed packed(groups * group, out, group, zeros);
          const Unpacked unpacked(packed.info());
          ASSERT_EQ(failure_of(unpack_gptq(packed.tensors(), unpacked.weight)), "");
          for (int64_t n = 0; n < out; ++n)
            for (int64_t k = 0; k < packed.in; ++k)
              ASSERT_EQ(weight_at(unpacked.weight, n, k), packed.at(n, k))
                  << "group " << group << ", in " << packed.in << ", row " << n << " of " << out
                  << ", input " << k;
        }
      }
    }
  }
}

TEST(PackGptq, GivesTheTensorsBack) {
  for (const int group : {32, 128}) {
    for (const int64_t out : {8, 72, 128}) {
      const Packed packed(3 * group, out, group);
      const Unpacked unpacked(packed.info());
      ASSERT_EQ(failure_of(unpack_gptq(packed.tensors(), unpacked.weight)), "");
      const PackedGptq again = pack_gptq(unpacked.weight);
      const GptqTensors tensors = packed.tensors();
      EXPECT_TRUE(std::ranges::equal(again.qweight, tensors.qweight));
      EXPECT_TRUE(std::ranges::equal(again.scales, tensors.scales));
      EXPECT_TRUE(std::ranges::equal(again.qzeros, tensors.qzeros));
    }
  }
}

TEST(UnpackGptq, NibbleOrder) {
  Packed packed(32, 8, 32);
  packed.qweight[0] = 0x87654321;  // codes of inputs 0..7 are 1..8
  packed.scales[0] = 0x3c00;       // 1.0
  const Unpacked unpacked(packed.info());
  ASSERT_EQ(failure_of(unpack_gptq(packed.tensors(), unpacked.weight)), "");
  for (int k = 0; k < 8; ++k) EXPECT_EQ(weight_at(unpacked.weight, 0, k), float(k + 1 - 8));
}

TEST(UnpackGptq, KeepsNegativeAndSubnormalScales) {
  Packed packed(64, 8, 32);
  packed.qweight[0] = 0xf0;       // input 0: code 0, input 1: code 15
  packed.qweight[4 * 8] = 0;      // input 32: code 0
  packed.scales[0] = 0xb800;      // -0.5
  packed.scales[8 + 0] = 0x0001;  // 2^-24, the smallest subnormal
  const Unpacked unpacked(packed.info());
  ASSERT_EQ(failure_of(unpack_gptq(packed.tensors(), unpacked.weight)), "");
  EXPECT_EQ(weight_at(unpacked.weight, 0, 0), 4.0f);
  EXPECT_EQ(weight_at(unpacked.weight, 0, 1), -3.5f);
  EXPECT_EQ(weight_at(unpacked.weight, 0, 32), -8 * 0x1p-24f);
}

TEST(UnpackGptq, ReadsUnalignedBytes) {
  const Packed packed(128, 72, 128);
  const auto shifted = [](std::span<const std::byte> bytes, std::vector<std::byte>& storage) {
    storage.assign(1, std::byte{0});
    storage.insert(storage.end(), bytes.begin(), bytes.end());
    return std::span<const std::byte>(storage).subspan(1);
  };
  std::vector<std::byte> storage[3];
  const GptqTensors aligned = packed.tensors();
  const GptqTensors tensors{shifted(aligned.qweight, storage[0]),
                            shifted(aligned.scales, storage[1]),
                            shifted(aligned.qzeros, storage[2])};
  const Unpacked unpacked(packed.info());
  ASSERT_EQ(failure_of(unpack_gptq(tensors, unpacked.weight)), "");
  EXPECT_EQ(weight_at(unpacked.weight, 71, 127), packed.at(71, 127));
}

TEST(UnpackGptq, RefusesScalesThatAreNotFinite) {
  for (const uint16_t scale : {0x7c00, 0xfc00, 0x7e00, 0x7c01}) {
    Packed packed(128, 16, 32);
    packed.scales[3 * 16 + 5] = scale;
    const Unpacked unpacked(packed.info());
    const std::string message = failure_of(unpack_gptq(packed.tensors(), unpacked.weight));
    EXPECT_THAT(message, HasSubstr("scale of output row 5, group 3"));
  }
}

TEST(UnpackGptq, RefusesAsymmetricZeroPoints) {
  Packed packed(128, 16, 32);
  packed.qzeros[5] = 0x77777767;
  const Unpacked unpacked(packed.info());
  const std::string message = failure_of(unpack_gptq(packed.tensors(), unpacked.weight));
  EXPECT_THAT(message, HasSubstr("asymmetric zero points are not supported"));
  EXPECT_THAT(message, HasSubstr("word 5"));
  EXPECT_THAT(message, HasSubstr("0x77777767"));
}

TEST(UnpackGptq, RefusesWrongSizes) {
  const Packed packed(128, 16, 32);
  const Unpacked unpacked(packed.info());
  GptqTensors tensors = packed.tensors();
  tensors.qweight = tensors.qweight.first(tensors.qweight.size() - 4);
  EXPECT_THAT(failure_of(unpack_gptq(tensors, unpacked.weight)), HasSubstr("qweight has 1020"));
  tensors = packed.tensors();
  tensors.scales = {};
  EXPECT_THAT(failure_of(unpack_gptq(tensors, unpacked.weight)), HasSubstr("scales has 0"));
  tensors = packed.tensors();
  tensors.qzeros = tensors.qzeros.first(3);
  EXPECT_THAT(failure_of(unpack_gptq(tensors, unpacked.weight)), HasSubstr("qzeros has 3"));

  const WeightInfo odd_group{WeightFormat::int4_group, 16, 128, 16};
  const Unpacked other(odd_group);
  EXPECT_THAT(failure_of(unpack_gptq(packed.tensors(), other.weight)), HasSubstr("groups of 16"));
  const WeightInfo odd_out{WeightFormat::int4_group, 12, 128, 32};
  const Unpacked third(odd_out);
  EXPECT_THAT(failure_of(unpack_gptq(packed.tensors(), third.weight)), HasSubstr("12 outputs"));
}

TEST(SymmetricZeros, TakesBothConventions) {
  const std::vector<uint32_t> v1(9, 0x77777777), v2(9, 0x88888888);
  EXPECT_TRUE(check_symmetric_zeros(bytes_of(v1)).ok());
  EXPECT_TRUE(check_symmetric_zeros(bytes_of(v2)).ok());
}

TEST(SymmetricZeros, RefusesAMixtureAndNothing) {
  std::vector<uint32_t> words(9, 0x77777777);
  words[4] = 0x88888888;
  const auto mixed = check_symmetric_zeros(bytes_of(words));
  ASSERT_FALSE(mixed.ok());
  EXPECT_THAT(mixed.failure().message, HasSubstr("0x88888888"));
  EXPECT_FALSE(check_symmetric_zeros({}).ok());
  EXPECT_FALSE(check_symmetric_zeros(bytes_of(words).first(2)).ok());
}

TEST(CheckTrivialGIdx, AcceptsTrivialOnly) {
  std::vector<int32_t> g_idx(256);
  for (int i = 0; i < 256; ++i) g_idx[size_t(i)] = i / 64;
  EXPECT_TRUE(check_trivial_g_idx(bytes_of(g_idx), 64).ok());
  g_idx[100] = 0;
  EXPECT_THAT(failure_of(check_trivial_g_idx(bytes_of(g_idx), 64)),
              HasSubstr("input 100 into group 0, expected 1"));
}

}  // namespace
}  // namespace slip
