#include "convert/int4_descent.h"

#include <gtest/gtest.h>

#include <vector>

#include "convert/descent_loops.h"
#include "quant/int4_group.h"
#include "tensor/buffer.h"
#include "tests/quant/random_values.h"

namespace slip {
namespace {

// A matrix with correlated inputs, as activations are.
struct Case {
  static constexpr int64_t kOut = 24, kIn = 64, kRows = 512;
  std::vector<float> weights = random_values(kOut * kIn, 5);
  Gram gram;
  WeightInfo info{WeightFormat::int4_group, kOut, kIn, 32};
  Buffer storage{host_memory(), plain_bytes(info)};
  Weight rounded = plain_weight(info, storage.data());
  Weight from;

  Case() {
    const std::vector<float> noise = random_values(kRows * kIn, 6);
    std::vector<float> x(noise);
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t i = 1; i < kIn; ++i)
        x[size_t(row * kIn + i)] += 0.7f * x[size_t(row * kIn + i - 1)];
    gram.inputs = kIn;
    gram.rows = kRows;
    gram.products.resize(kIn * kIn);
    descent_loops().gram(gram.products.data(), x.data(),
                         {.rows = kRows, .inputs = kIn, .begin = 0, .end = kIn});
    for (int64_t i = 0; i < kIn; ++i)
      for (int64_t j = 0; j < i; ++j)
        gram.products[size_t(i * kIn + j)] = gram.products[size_t(j * kIn + i)];
    for (int64_t i = 0; i < kIn; ++i) {
      double sum = 0;
      for (int64_t row = 0; row < kRows; ++row)
        sum += x[size_t(row * kIn + i)] * x[size_t(row * kIn)];
      EXPECT_NEAR(gram.products[size_t(i)], sum, 1e-5);
    }
    from.info = {WeightFormat::f32, kOut, kIn, 0};
    from.values = View{reinterpret_cast<std::byte*>(weights.data()), DType::f32, {kOut, kIn}};
    EXPECT_TRUE(quantize_int4_groups(from, rounded, 0).ok());
  }

  double output_error() const {
    double sum = 0;
    for (int64_t row = 0; row < kOut; ++row)
      for (int64_t i = 0; i < kIn; ++i)
        for (int64_t j = 0; j < kIn; ++j)
          sum += (weight_at(rounded, row, i) - weight_at(from, row, i)) *
                 gram.products[size_t(i * kIn + j)] *
                 (weight_at(rounded, row, j) - weight_at(from, row, j));
    return sum;
  }
};

TEST(Int4Descent, LowersTheErrorOfOutputs) {
  Case one;
  const double nearest = one.output_error();
  const DescentErrors errors =
      descend({one.from, one.rounded, 0, Case::kOut}, DescentGram(one.gram, 0), {});
  EXPECT_NEAR(errors.before, nearest, 1e-3 * nearest);
  EXPECT_NEAR(errors.after, one.output_error(), 1e-2 * nearest);
  EXPECT_LT(errors.after, 0.6 * nearest);
}

// No single code, and no scale, could be changed for the better.
TEST(Int4Descent, EndsWhereNoStepHelps) {
  Case one;
  (void)descend({one.from, one.rounded, 0, 4}, DescentGram(one.gram, 0), {.sweeps = 50});
  auto* codes = one.rounded.values.as<uint8_t>(DType::u8);
  const double end = one.output_error();
  for (int64_t byte = 0; byte < 4 * Case::kIn / 2; ++byte) {
    const uint8_t kept = codes[byte];
    if ((kept & 15) < 15) {
      codes[byte] = uint8_t(kept + 1);
      EXPECT_GE(one.output_error(), end * (1 - 1e-4)) << byte;
    }
    if ((kept & 15) > 0) {
      codes[byte] = uint8_t(kept - 1);
      EXPECT_GE(one.output_error(), end * (1 - 1e-4)) << byte;
    }
    codes[byte] = kept;
  }
}

}  // namespace
}  // namespace slip
