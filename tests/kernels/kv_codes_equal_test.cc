// Coded caches of the CPU: every instruction set against the definition and the reference, and
// against itself with other steps, threads and rejected rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/simd/loops.h"
#include "tests/kernels/kv_sequence.h"

namespace slip {
namespace {

constexpr int64_t kPageLen = 64;

constexpr KvCodec kCodecs[] = {KvCodec::int8, KvCodec::tq4, KvCodec::tq3, KvCodec::tq2};
constexpr KvRecipe kDefault{KvCodec::tq4, KvCodec::tq4};

KvShape shape_of(int64_t group, int64_t kv_heads, int64_t head_dim) {
  return {group * kv_heads, kv_heads, head_dim, kPageLen};
}

std::string describe(const KvShape& shape, const KvRecipe& recipe) {
  return cat(name_of(recipe), ", ", shape.q_heads, "/", shape.kv_heads, " heads of ",
             shape.head_dim);
}

std::unique_ptr<Ops> make_ops(ThreadPool& pool, Isa isa) {
  auto ops = make_cpu_ops(pool, isa);
  ops->reserve({.rows = 512, .widest_input = 16, .q_heads = 32, .head_dim = 256, .context = 8192});
  return ops;
}

class KvCodesEqual : public ::testing::TestWithParam<Isa> {
 protected:
  Ops& ops() { return *ops_; }
  const Loops& loops() const { return loops_for(GetParam()); }

 private:
  ThreadPool pool_{2};
  std::unique_ptr<Ops> ops_ = make_ops(pool_, GetParam());
};

TEST_P(KvCodesEqual, RotationHasTheBitsOfTheDefinition) {
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

TEST_P(KvCodesEqual, CodesAreThoseOfTheDefinition) {
  Rng rng(2);
  for (const int64_t dim : {16, 64, 256, 1024}) {
    for (const std::vector<float>& x : vectors_to_code(dim, rng)) {
      for (const int bits : {2, 3, 4}) {
        const TurboBook& book = turbo_book(bits);
        std::vector<uint8_t> right(x.size()), ours(x.size());
        const float scale = turbo_encode(x, bits, right);
        const float our_scale =
            loops().turbo_encode(x.data(), dim,
                                 {book.levels.data(), book.thresholds.data(),
                                  int(book.thresholds.size()), book.kappa},
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

// The largest error of a head of a row, relative to what the reference has there.
double worst_relative_error(const Guarded& got, const Guarded& right, int64_t first_row) {
  const View& shape = right.view();
  const int64_t dim = shape.shape[2], heads = shape.shape[1];
  double worst = 0;
  for (int64_t h = first_row * heads; h < shape.shape[0] * heads; ++h) {
    double error = 0, magnitude = 0;
    for (int64_t i = h * dim; i < (h + 1) * dim; ++i) {
      const double difference = double(got.f32()[i]) - double(right.f32()[i]);
      error += difference * difference;
      magnitude += double(right.f32()[i]) * double(right.f32()[i]);
    }
    const double relative = std::sqrt(error / magnitude);
    worst = std::isnan(relative) ? INFINITY : std::max(worst, relative);
  }
  return worst;
}

double error_of(Ops& ours, const KvShape& shape, const KvRecipe& recipe, int64_t context,
                int64_t rows, Rng& rng) {
  const KvRows inputs(shape, context + rows, rng);
  const auto ref = make_ref_ops();
  KvSequence right(*ref, inputs, recipe), got(ours, inputs, recipe);
  for (KvSequence* sequence : {&right, &got}) {
    if (context > 0) sequence->store_only(context);
    sequence->step(rows);
  }
  return worst_relative_error(got.out(), right.out(), context);
}

TEST_P(KvCodesEqual, Explore) {
  Rng rng(3);
  for (const KvCodec keys : kCodecs)
    for (const KvCodec values : kCodecs) {
      const KvShape shape = shape_of(2, 2, 32);
      const KvRecipe recipe{keys, values};
      for (int64_t context : {1, 63, 64, 65, 127, 128, 129, 130, 1025})
        printf("%s %ld: %.2e\n", describe(shape, recipe).c_str(), context,
               error_of(ops(), shape, recipe, context, 3, rng));
    }
}

std::string isa_name(const ::testing::TestParamInfo<Isa>& info) {
  return info.param == Isa::avx512 ? "avx512" : info.param == Isa::avx2 ? "avx2" : "portable";
}
INSTANTIATE_TEST_SUITE_P(Isas, KvCodesEqual, ::testing::ValuesIn(available_isas()), isa_name);

}  // namespace
}  // namespace slip
