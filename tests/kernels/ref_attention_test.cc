// The reference's rotation, paging and attention against independently written versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

TEST(RefRopeTable, AnglesArePositionTimesFrequency) {
  const Guarded frequencies = constant_tensor({2}, 1);
  frequencies.f32()[1] = 0.01f;
  const Guarded cos({3, 2}), sin({3, 2});
  const Span spans[] = {{.first_row = 0, .rows = 2, .start = 5, .state_slot = 0, .pages = {}},
                        {.first_row = 2, .rows = 1, .start = 100, .state_slot = 0, .pages = {}}};
  make_ref_ops()->rope_table(
      {.frequencies = frequencies, .scale = 2, .cos = cos, .sin = sin, .spans = spans});
  const double positions[] = {5, 6, 100};
  for (int r = 0; r < 3; ++r) {
    EXPECT_NEAR(cos.f32()[r * 2], 2 * std::cos(positions[r]), 1e-6);
    EXPECT_NEAR(sin.f32()[r * 2], 2 * std::sin(positions[r]), 1e-6);
    EXPECT_NEAR(cos.f32()[r * 2 + 1], 2 * std::cos(positions[r] * 0.01), 1e-6);
    EXPECT_NEAR(sin.f32()[r * 2 + 1], 2 * std::sin(positions[r] * 0.01), 1e-6);
  }
}

// A quarter turn of the first pair of two, in a head of six: dimensions 0 and 2 trade places.
TEST(RefRotateAndStore, PairsWithTheOtherHalfAndPassesTheRest) {
  const Guarded q({1, 1, 12}), k({1, 1, 6}), v({1, 1, 6});
  // Mean square 91 / 6; undone by the scale.
  const float norm = float(std::sqrt(91.0 / 6));
  for (int i = 0; i < 6; ++i) {
    q.f32()[i] = float(i + 1);
    k.f32()[i] = float(6 - i);
    v.f32()[i] = float(10 * i);
  }
  const Guarded q_scale = constant_tensor({6}, norm), k_scale = constant_tensor({6}, 2 * norm);
  const Guarded cos = constant_tensor({1, 2}, 1), sin = constant_tensor({1, 2}, 0);
  cos.f32()[0] = 0;
  sin.f32()[0] = 1;
  const Guarded keys({2, 1, 4, 6}), values({2, 1, 4, 6});
  const Guarded out_q({1, 1, 6});
  const int32_t pages[] = {1, 0};
  const Span span{.first_row = 0, .rows = 1, .start = 6, .state_slot = 0, .pages = pages};
  make_ref_ops()->rotate_and_store({.q = q,
                                    .k = k,
                                    .v = v,
                                    .q_scale = q_scale,
                                    .k_scale = k_scale,
                                    .eps = 0,
                                    .cos = cos,
                                    .sin = sin,
                                    .out_q = out_q,
                                    .kv = {keys, values},
                                    .spans = {&span, 1}});
  const float expected_q[] = {-3, 2, 1, 4, 5, 6};
  const float expected_k[] = {-8, 10, 12, 6, 4, 2};
  for (int64_t page = 0; page < 2; ++page) {
    for (int64_t slot = 0; slot < 4; ++slot) {
      for (int64_t i = 0; i < 6; ++i) {
        const float key = keys.f32()[(page * 4 + slot) * 6 + i];
        const float value = values.f32()[(page * 4 + slot) * 6 + i];
        if (page == 0 && slot == 2) {  // position 6: the second page of the table, place 2
          EXPECT_NEAR(key, expected_k[i], 1e-5) << i;
          EXPECT_EQ(value, float(10 * i));
        } else {
          EXPECT_TRUE(std::isnan(key) && std::isnan(value)) << page << " " << slot;
        }
      }
    }
  }
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(out_q.f32()[i], expected_q[i], 1e-5) << i;
}

TEST(RefRotateAndStore, RoundsToBf16) {
  const Guarded q = constant_tensor({1, 1, 2}, 1), k = constant_tensor({1, 1, 2}, 1);
  const Guarded v = constant_tensor({1, 1, 2}, 1.00390625f);  // halfway: to even, 1.0
  v.f32()[1] = 1.01171875f;                                   // halfway: to even, 1.015625
  const Guarded scale = constant_tensor({2}, 1), cos = constant_tensor({1, 1}, 1);
  const Guarded sin = constant_tensor({1, 1}, 0);
  const Guarded keys({1, 1, 1, 2}, DType::bf16), values({1, 1, 1, 2}, DType::bf16);
  const Guarded out_q({1, 1, 2});
  const int32_t pages[] = {0};
  const Span span{.first_row = 0, .rows = 1, .start = 0, .state_slot = 0, .pages = pages};
  make_ref_ops()->rotate_and_store({.q = q,
                                    .k = k,
                                    .v = v,
                                    .q_scale = scale,
                                    .k_scale = scale,
                                    .eps = 0,
                                    .cos = cos,
                                    .sin = sin,
                                    .out_q = out_q,
                                    .kv = {keys, values},
                                    .spans = {&span, 1}});
  const auto* stored = values.view().as<uint16_t>(DType::bf16);
  EXPECT_EQ(bf16_to_float(stored[0]), 1.0f);
  EXPECT_EQ(bf16_to_float(stored[1]), 1.015625f);
}

// Pages in no order against a dense copy of keys and values.
TEST(RefAttention, PagesEqualDenseSoftmax) {
  constexpr int64_t kQHeads = 4, kKvHeads = 2, kDim = 6, kPageLen = 4, kPages = 6, kEnd = 11;
  Rng rng(1);
  std::vector<float> dense_k, dense_v;  // [position, kv_head, dim]
  for (int64_t i = 0; i < kEnd * kKvHeads * kDim; ++i) {
    dense_k.push_back(float(rng.normal()));
    dense_v.push_back(float(rng.normal()));
  }
  const int32_t table[] = {3, 0, 5};
  const Guarded keys({kPages, kKvHeads, kPageLen, kDim}), values(keys.view().shape);
  for (int64_t p = 0; p < kEnd; ++p)
    for (int64_t h = 0; h < kKvHeads; ++h)
      for (int64_t i = 0; i < kDim; ++i) {
        const int64_t to = ((table[p / kPageLen] * kKvHeads + h) * kPageLen + p % kPageLen) * kDim;
        const size_t from = size_t((p * kKvHeads + h) * kDim + i);
        keys.f32()[to + i] = dense_k[from];
        values.f32()[to + i] = dense_v[from];
      }
  constexpr int64_t kRows = 3, kStart = kEnd - kRows;
  const Guarded q = random_tensor({kRows, kQHeads, kDim}, rng);
  const Guarded out({kRows, kQHeads, kDim});
  const float scale = 0.7f;
  const Span span{.first_row = 0, .rows = kRows, .start = kStart, .state_slot = 0, .pages = table};
  make_ref_ops()->attention(
      {.q = q, .kv = {keys, values}, .out = out, .scale = scale, .spans = {&span, 1}});
  for (int64_t t = 0; t < kRows; ++t) {
    for (int64_t h = 0; h < kQHeads; ++h) {
      std::vector<double> mixed(kDim, 0.0);
      double total = 0;
      for (int64_t p = 0; p <= kStart + t; ++p) {
        const size_t at = size_t((p * kKvHeads + h / 2) * kDim);
        double score = 0;
        for (size_t i = 0; i < kDim; ++i)
          score += double(q.f32()[(t * kQHeads + h) * kDim + int64_t(i)]) * dense_k[at + i];
        const double weight = std::exp(score * double(scale));
        total += weight;
        for (size_t i = 0; i < kDim; ++i) mixed[i] += weight * dense_v[at + i];
      }
      for (int64_t i = 0; i < kDim; ++i)
        EXPECT_NEAR(out.f32()[(t * kQHeads + h) * kDim + i], mixed[size_t(i)] / total, 1e-6);
    }
  }
}

TEST(RefAttentionDeathTest, StopsOnMissingPages) {
  const Guarded q = constant_tensor({1, 2, 4}, 1), out({1, 2, 4});
  const Guarded keys({2, 1, 8, 4}), values({2, 1, 8, 4});
  const auto run = [&](std::span<const int32_t> pages) {
    const Span span{.first_row = 0, .rows = 1, .start = 8, .state_slot = 0, .pages = pages};
    make_ref_ops()->attention(
        {.q = q, .kv = {keys, values}, .out = out, .scale = 1, .spans = {&span, 1}});
  };
  const int32_t one[] = {0}, wild[] = {0, 2}, wild_before[] = {2, 0};
  EXPECT_DEATH(run(one), "attention: span ends at 9 but has 1 pages of 8");
  EXPECT_DEATH(run(wild), "attention: page 2 of 2");
  EXPECT_DEATH(run(wild_before), "attention: page 2 of 2");
}

}  // namespace
}  // namespace slip
