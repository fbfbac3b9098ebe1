#include "quant/fp8_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "quant/number_formats.h"
#include "tensor/buffer.h"

namespace slip {
namespace {

using ::testing::HasSubstr;

struct Fp8Weight {
  Fp8Weight(int64_t out, int64_t in) : info{WeightFormat::fp8_block, out, in, kFp8Block} {
    buffer = Buffer(host_memory(), plain_bytes(info));
    weight = plain_weight(info, buffer.data());
  }
  WeightInfo info;
  Buffer buffer;
  Weight weight;
};

TEST(ReadFp8Scales, UpcastsEveryStoredType) {
  const Fp8Weight target(129, 300);  // 2 x 3 blocks, the last ones partial
  const std::vector<float> scales = {0.5f, -1, 2, 0.25f, 3, 0.125f};
  std::vector<uint16_t> bf16, f16;
  for (const float scale : scales) {
    bf16.push_back(float_to_bf16(scale));
    f16.push_back(float_to_f16(scale));
  }
  const auto expect_scales = [&](const Status& status) {
    ASSERT_TRUE(status.ok()) << status.failure().message;
    for (size_t i = 0; i < scales.size(); ++i) EXPECT_EQ(target.weight.scales.f32()[i], scales[i]);
  };
  expect_scales(read_fp8_scales(std::as_bytes(std::span(scales)), DType::f32, target.weight));
  expect_scales(read_fp8_scales(std::as_bytes(std::span(bf16)), DType::bf16, target.weight));
  expect_scales(read_fp8_scales(std::as_bytes(std::span(f16)), DType::f16, target.weight));

  target.weight.values.data[128 * 300 + 299] = std::byte{0x38};  // 1.0 in the last block
  EXPECT_EQ(weight_at(target.weight, 128, 299), 0.125f);
}

TEST(ReadFp8Scales, RefusesWhatItCannotUse) {
  const Fp8Weight target(129, 300);
  std::vector<float> scales(6, 1.0f);
  const auto failure = [&](DType type) {
    const Status status = read_fp8_scales(std::as_bytes(std::span(scales)), type, target.weight);
    return status.ok() ? "" : status.failure().message;
  };
  EXPECT_EQ(failure(DType::f32), "");
  EXPECT_THAT(failure(DType::bf16), HasSubstr("24 bytes, expected 12 for [2, 3]"));
  EXPECT_THAT(failure(DType::u8), HasSubstr("stored as u8"));
  scales[4] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(failure(DType::f32), HasSubstr("block row 1, block column 1"));
  scales[4] = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(failure(DType::f32), HasSubstr("-inf"));
}

TEST(CheckFp8Codes, FindsEitherNanAnywhere) {
  for (const size_t count : {1, 7, 255, 256, 257, 1000, 4096 + 3}) {
    std::vector<std::byte> codes(count, std::byte{0xfe});
    EXPECT_TRUE(check_fp8_codes(codes, 1).ok());
    for (size_t i = 0; i < count; i += 1 + count / 97) {
      for (const uint8_t nan : {0x7f, 0xff}) {
        codes[i] = std::byte{nan};
        const Status status = check_fp8_codes(codes, 1);
        ASSERT_FALSE(status.ok()) << i << " of " << count;
        EXPECT_THAT(status.failure().message, HasSubstr(cat("output row ", i, ",")));
      }
      codes[i] = std::byte{0x7e};
    }
  }
}

}  // namespace
}  // namespace slip
