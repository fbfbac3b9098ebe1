// What the reference computes over coded and fp8 caches, against dense attention written down
// again, and how far that is from attention over exact keys and values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/kv_sequence.h"

namespace slip {
namespace {

using Vector = std::vector<double>;

constexpr KvShape kSmall{2, 1, 16, 4};

// Rows without rotation by position, so that only the norm comes before the cache.
KvRows unturned_rows(const KvShape& shape, int64_t count, Rng& rng) {
  KvRows rows(shape, count, rng);
  for (float& value : rows.cos.values()) value = 1;
  for (float& value : rows.sin.values()) value = 0;
  return rows;
}

// Vector n of a [.., head_dim] tensor.
Vector vector_of(const Guarded& tensor, int64_t n) {
  const int64_t dim = tensor.view().shape[2];
  const float* values = tensor.f32() + n * dim;
  return {values, values + dim};
}

Vector normalised(Vector x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  for (double& value : x) value /= std::sqrt(sum / double(x.size()) + 1e-6);
  return x;
}

Vector softmax_mix(const Vector& q, const std::vector<Vector>& keys,
                   const std::vector<Vector>& values) {
  Vector mixed(q.size(), 0.0);
  double total = 0;
  for (size_t p = 0; p < keys.size(); ++p) {
    double score = 0;
    for (size_t i = 0; i < q.size(); ++i) score += q[i] * keys[p][i];
    const double weight = std::exp(score / std::sqrt(double(q.size())));
    total += weight;
    for (size_t i = 0; i < q.size(); ++i) mixed[i] += weight * values[p][i];
  }
  for (double& value : mixed) value /= total;
  return mixed;
}

// One step over a fresh cache. Keys and values of the row's own page as the tail would hold them,
// of the pages before it as codes, all turned back, so that attention needs no rotation.
TEST(RefKvQuality, EqualsDenseAttentionOverDecodedVectors) {
  constexpr int64_t kCount = 15;
  const int32_t table[] = {2, 0, 3, 1};
  const Span span{.rows = kCount, .state_slot = 1, .pages = table};
  for (const KvRecipe recipe :
       {KvRecipe{KvCodec::tq4, KvCodec::tq2}, KvRecipe{KvCodec::tq3, KvCodec::int8}}) {
    Rng rng(1);
    const KvRows rows = unturned_rows(kSmall, kCount, rng);
    const Guarded k = copy_of(rows.k), v = copy_of(rows.v);
    const KvStorage storage(recipe, kSmall, 4);
    const Guarded out = run_step(*make_ref_ops(), rows, storage, {&span, 1});
    for (int64_t p = 0; p < kCount; ++p) {
      std::vector<Vector> keys, values;
      for (int64_t j = 0; j <= p; ++j) {
        const bool coded = j / kSmall.page_len < p / kSmall.page_len;
        keys.push_back(coded ? coded_and_back(rows_of(rows.k, j, 1), recipe.keys)
                             : vector_of(rows.k, j));
        values.push_back(coded ? coded_and_back(rows_of(rows.v, j, 1), recipe.values)
                               : vector_of(rows.v, j));
        turbo_unrotate(keys.back(), KvSide::keys);
        turbo_unrotate(values.back(), KvSide::values);
      }
      for (int64_t h = 0; h < kSmall.q_heads; ++h) {
        const int64_t row = p * kSmall.q_heads + h;
        const Vector expected = softmax_mix(normalised(vector_of(rows.q, row)), keys, values);
        const Vector got = vector_of(out, row);
        for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5) << p;
      }
      // The last key and value are the row's own, but for rounding to bf16.
      const Vector key = normalised(vector_of(k, p)), value = vector_of(v, p);
      for (size_t i = 0; i < key.size(); ++i) {
        EXPECT_NEAR(keys.back()[i], key[i], 0.05);
        EXPECT_NEAR(values.back()[i], value[i], 0.05);
      }
    }
  }
}

// Inside the first page nothing is read as codes.
TEST(RefKvQuality, RecipesAgreeUntilAPageIsFull) {
  Rng rng(2);
  const KvRows inputs(kSmall, kSmall.page_len, rng);
  const auto ops = make_ref_ops();
  KvSequence coarse(*ops, inputs, {KvCodec::tq2, KvCodec::tq2});
  KvSequence fine(*ops, inputs, {KvCodec::int8, KvCodec::int8});
  coarse.step(kSmall.page_len);
  fine.step(kSmall.page_len);
  expect_same_bits(coarse.out().values(), fine.out().values(), "2 and 8 bits");
}

TEST(RefKvQuality, Fp8IsACast) {
  Rng rng(3);
  const KvRows rows = unturned_rows(kSmall, 7, rng);
  rows.v.f32()[0] = 1000;  // clamped to 448
  const int32_t table[] = {1, 0};
  const Span span{.rows = 7, .pages = table};
  const KvStorage storage({KvCodec::fp8, KvCodec::fp8}, kSmall, 2);
  const Guarded out = run_step(*make_ref_ops(), rows, storage, {&span, 1});
  const auto cast = [](Vector x) {
    for (double& value : x) value = double(fp8_to_float(float_to_fp8(float(value))));
    return x;
  };
  std::vector<Vector> keys, values;
  for (int64_t p = 0; p < 7; ++p) {
    keys.push_back(cast(normalised(vector_of(rows.k, p))));
    values.push_back(cast(vector_of(rows.v, p)));
  }
  EXPECT_EQ(values[0][0], 448);
  const Vector expected = softmax_mix(normalised(vector_of(rows.q, 12)), keys, values);
  const Vector got = vector_of(out, 12);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-4);
  EXPECT_EQ(*storage.paged[1].view().slice(1, 1).as<uint8_t>(DType::fp8_e4m3), 0x7e);
}

// Independent keys and values, scores of standard deviation 1: the worst case, since real values
// have a part in common that averages well. Errors of the mix in parts of its length; those of
// keys and of values add up as squares.
TEST(RefKvQuality, AttentionErrorIsThatOfTheCodecs) {
  constexpr KvShape kHeads{8, 2, 256, 64};
  constexpr int64_t kCount = 16 * 64 + 1;  // all but the last position are read as codes
  Rng rng(4);
  const KvRows inputs(kHeads, kCount, rng);
  const auto ops = make_ref_ops();
  const auto last_row = [&](const KvRecipe& recipe) {
    KvSequence sequence(*ops, inputs, recipe);
    sequence.store_only(kCount - 1);
    sequence.step(1);
    const auto out = rows_of(sequence.out(), kCount - 1, 1);
    return std::vector<float>(out.begin(), out.end());
  };
  const std::vector<float> exact = last_row({KvCodec::f32, KvCodec::f32});
  const struct {
    const char* recipe;
    double error;
  } cases[] = {{"int8", 0.0101}, {"fp8", 0.037},  {"k8v4", 0.098}, {"k4v4", 0.140},
               {"k4v3", 0.216},  {"k3v3", 0.275}, {"k3v2", 0.417}, {"k2v2", 0.536}};
  for (const auto& expected : cases) {
    const std::vector<float> coded = last_row(parse_kv_recipe(expected.recipe).value());
    double sum = 0;
    for (int64_t h = 0; h < kHeads.q_heads; ++h) {
      double error = 0, length = 0;
      for (int64_t i = h * kHeads.head_dim; i < (h + 1) * kHeads.head_dim; ++i) {
        error += std::pow(double(coded[size_t(i)]) - double(exact[size_t(i)]), 2);
        length += std::pow(double(exact[size_t(i)]), 2);
      }
      sum += std::sqrt(error / length);
    }
    EXPECT_NEAR(sum / double(kHeads.q_heads), expected.error, 0.1 * expected.error)
        << expected.recipe;
  }
}

}  // namespace
}  // namespace slip
