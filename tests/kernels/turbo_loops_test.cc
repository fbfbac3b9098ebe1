// TurboQuant in the inner loops of every instruction set: bit for bit the definition.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/simd/loops.h"
#include "quant/turboquant.h"
#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

class TurboLoops : public ::testing::TestWithParam<Isa> {
 protected:
  const Loops& loops() const { return loops_for(GetParam()); }
};

TEST_P(TurboLoops, RotationHasTheBitsOfTheDefinition) {
  Rng rng(1);
  for (const int64_t dim : {16, 32, 64, 128, 256, 512, 1024}) {
    for (const KvSide side : {KvSide::keys, KvSide::values}) {
      const Guarded x = random_tensor({dim}, rng);
      const Guarded there = copy_of(x), ours = copy_of(x);
      turbo_rotate(there.values(), side);
      loops().turbo_rotate(turbo_signs(side).data(), dim, ours.f32());
      expect_same_bits(ours.values(), there.values(), cat("rotation of ", dim));
      turbo_unrotate(there.values(), side);
      loops().turbo_unrotate(turbo_signs(side).data(), dim, ours.f32());
      expect_same_bits(ours.values(), there.values(), cat("rotation back of ", dim));
    }
  }
}

// Random vectors, and those where the definition makes exceptions or values sit on thresholds.
std::vector<std::vector<float>> vectors_to_code(int64_t dim, Rng& rng) {
  std::vector<std::vector<float>> vectors;
  for (int i = 0; i < 50; ++i) {
    auto& x = vectors.emplace_back(size_t(dim));
    const double scale = std::exp2(rng.integer(-40, 40));
    for (float& value : x) value = bf16_to_float(float_to_bf16(float(rng.normal() * scale)));
  }
  vectors.push_back(std::vector<float>(size_t(dim), 1.0f));
  vectors.push_back(std::vector<float>(size_t(dim), 0.0f));
  vectors.push_back(std::vector<float>(size_t(dim), 1e-30f));
  vectors.push_back(std::vector<float>(size_t(dim), 3e38f));
  vectors.push_back(std::vector<float>(size_t(dim), 0.0f));
  vectors.back()[3] = -7;
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    vectors.push_back(vectors.front());
    vectors.back()[5] = bad;
  }
  return vectors;
}

TEST_P(TurboLoops, CodesAreThoseOfTheDefinition) {
  Rng rng(2);
  for (const int64_t dim : {16, 64, 256, 1024}) {
    for (const std::vector<float>& x : vectors_to_code(dim, rng)) {
      for (const int bits : {2, 3, 4}) {
        const TurboBook& book = turbo_book(bits);
        std::vector<uint8_t> right(x.size()), ours(x.size());
        const float scale = turbo_encode(x, bits, right);
        const float our_scale = loops().turbo_encode(
            x.data(), dim,
            {book.levels.data(), book.thresholds.data(), int(book.thresholds.size()), book.kappa},
            ours.data());
        EXPECT_EQ(ours, right) << bits << " bits, " << dim;
        EXPECT_EQ(float_to_bf16(our_scale), float_to_bf16(scale)) << bits << " bits, " << dim;
      }
      std::vector<int8_t> right(x.size()), ours(x.size());
      const float scale = turbo_encode_int8(x, right);
      EXPECT_EQ(loops().turbo_encode_int8(x.data(), dim, ours.data()), scale);
      EXPECT_EQ(ours, right) << "int8, " << dim;
    }
  }
}

std::string isa_name(const ::testing::TestParamInfo<Isa>& info) { return id_of(info.param); }
INSTANTIATE_TEST_SUITE_P(Isas, TurboLoops, ::testing::ValuesIn(available_isas()), isa_name);

}  // namespace
}  // namespace slip
