// The reference's coded caches: what is coded when, what is read uncoded, and how well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/kv_tail.h"
#include "kernels/ref/kv_codes.h"
#include "tests/kernels/kv_sequence.h"

namespace slip {
namespace {

using ::testing::Each;

std::vector<KvRecipe> coded_recipes() {
  std::vector<KvRecipe> recipes;
  for (const KvCodec keys : {KvCodec::int8, KvCodec::tq4, KvCodec::tq3, KvCodec::tq2})
    for (const KvCodec values : {KvCodec::int8, KvCodec::tq4, KvCodec::tq3, KvCodec::tq2})
      recipes.push_back({keys, values});
  return recipes;
}

KvRecipe recipe_named(const char* name) { return parse_kv_recipe(name).value(); }

TEST(RefKvCodes, VectorsKeepToTheirBits) {
  constexpr int64_t kPages = 2, kPageLen = 4, kDim = 8;
  for (const KvCodec codec : {KvCodec::int8, KvCodec::tq4, KvCodec::tq3, KvCodec::tq2}) {
    const Guarded codes({kPages, 1, kPageLen * kDim * bits_of(codec) / 8}, DType::u8);
    const Guarded scales({kPages, 1, kPageLen}, DType::bf16);
    const Guarded tail({1, 1, 2 * kPageLen, kDim}, DType::bf16);
    const CodedSide kv{KvSide::keys, codec, codes, scales, tail, {}};
    Rng rng(1);
    const Guarded x = random_tensor({kPages * kPageLen, kDim}, rng);
    for (const int64_t vector : {5, 0, 7, 6, 4, 1, 3, 2})
      write_codes(kv, vector, rows_of(x, vector, 1));
    for (int64_t vector = 0; vector < kPages * kPageLen; ++vector) {
      std::vector<double> values(kDim);
      read_codes(kv, vector, values);
      EXPECT_EQ(values, coded_and_back(rows_of(x, vector, 1), codec)) << bits_of(codec);
    }
  }
}

struct Outcome {
  std::vector<float> out;
  std::vector<std::byte> contents;
};

Outcome outcome(const KvSequence& sequence) {
  const std::span<const float> out = sequence.out().values();
  return {{out.begin(), out.end()}, sequence.contents()};
}

Outcome run(const KvRows& inputs, const KvRecipe& recipe, const std::vector<int64_t>& steps) {
  const auto ops = make_ref_ops();
  KvSequence sequence(*ops, inputs, recipe);
  for (const int64_t rows : steps) sequence.step(rows);
  return outcome(sequence);
}

void expect_same(const Outcome& got, const Outcome& expected, const std::string& what) {
  expect_same_bits(got.out, expected.out, what);
  EXPECT_TRUE(got.contents == expected.contents) << what << ": the caches differ";
}

TEST(RefKvCodes, StepsOfAnySizeGiveTheSameBits) {
  Rng rng(2);
  const KvRows inputs({2, 1, 16, 64}, 300, rng);
  for (const char* name : {"k4v4", "k3v2", "int8"}) {
    const Outcome one_by_one = run(inputs, recipe_named(name), std::vector<int64_t>(300, 1));
    EXPECT_THAT(one_by_one.out, Each(::testing::Truly([](float v) { return std::isfinite(v); })));
    for (const std::vector<int64_t>& steps : std::vector<std::vector<int64_t>>{
             {300}, {10, 290}, {63, 1, 236}, {65, 127, 108}, {1, 3, 7, 50, 99, 31, 109}})
      expect_same(run(inputs, recipe_named(name), steps), one_by_one, name);
  }
}

// Every place where a step may begin and end, with pages so small that the tail wraps often.
TEST(RefKvCodes, EverySplitGivesTheSameBits) {
  constexpr int64_t kCount = 27;
  Rng rng(3);
  const KvRows inputs({1, 1, 8, 4}, kCount, rng);
  const KvRecipe recipe = recipe_named("k4v3");
  const Outcome one_by_one = run(inputs, recipe, std::vector<int64_t>(kCount, 1));
  for (int64_t begin = 0; begin < kCount; ++begin)
    for (int64_t end = begin + 1; end <= kCount; ++end)
      expect_same(run(inputs, recipe, {begin, end - begin, kCount - end}), one_by_one,
                  cat("a step of [", begin, ", ", end, ")"));
}

TEST(RefKvCodes, EveryPairOfCodecsRuns) {
  Rng rng(4);
  const KvRows inputs({4, 2, 32, 8}, 37, rng);
  for (const KvRecipe& recipe : coded_recipes())
    expect_same(run(inputs, recipe, {3, 20, 14}), run(inputs, recipe, std::vector<int64_t>(37, 1)),
                name_of(recipe));
}

// Rows that are rejected may have completed a page, or begun another, with values that never were.
TEST(RefKvCodes, RejectedRowsLeaveNoTrace) {
  constexpr int64_t kCount = 30, kPageLen = 8;
  Rng rng(5);
  const KvRows inputs({2, 1, 8, kPageLen}, kCount, rng), wrong({2, 1, 8, kPageLen}, kCount, rng);
  const auto ops = make_ref_ops();
  const KvRecipe recipe = recipe_named("k4v4");
  const Outcome clean = run(inputs, recipe, std::vector<int64_t>(kCount, 1));
  for (int64_t start = 0; start + kPageLen <= kCount; ++start) {
    for (const int64_t rows : {int64_t{1}, int64_t{3}, kPageLen}) {
      for (int64_t accepted = 0; accepted < rows; ++accepted) {
        KvSequence sequence(*ops, inputs, recipe);
        sequence.step(start);
        sequence.tentative_step(rows, accepted, wrong);
        sequence.tentative_step(1, 0, wrong);
        sequence.step(kCount - sequence.length());
        expect_same(outcome(sequence), clean, cat(accepted, " of ", rows, " rows from ", start));
      }
    }
  }
}

// A cache with some past of any kind.
KvStorage random_storage(const KvRecipe& recipe, const KvShape& shape, int64_t pages) {
  Rng rng(7);
  KvStorage storage(recipe, shape, pages);
  for (size_t i = 0; i < 2; ++i)
    for (int64_t n = 0; n < storage.paged[i].view().count(); ++n)
      storage.paged[i].view().as<uint8_t>(DType::u8)[n] = uint8_t(rng.integer(0, 255));
  for (const Guarded* tensor :
       {&storage.paged[2], &storage.paged[3], &storage.tails[0], &storage.tails[1]})
    for (int64_t n = 0; n < tensor->view().count(); ++n)
      tensor->view().as<uint16_t>(DType::bf16)[n] = float_to_bf16(float(rng.normal()));
  return storage;
}

TEST(RefKvCodes, SequencesOfAStepDoNotSeeEachOther) {
  const KvShape shape{4, 2, 8, 4};
  const int32_t first_table[] = {3, 0, 5}, second_table[] = {1, 4, 2, 6};
  const Span spans[] = {
      {.first_row = 0, .rows = 4, .start = 7, .state_slot = 1, .pages = first_table},
      {.first_row = 4, .rows = 5, .start = 10, .state_slot = 0, .pages = second_table}};
  const auto ops = make_ref_ops();
  const KvRecipe recipe = recipe_named("k3v4");
  const KvStorage together = random_storage(recipe, shape, 7);
  const KvStorage apart = random_storage(recipe, shape, 7);
  Rng rng(6), same_rng(6);
  const KvRows rows(shape, 9, rng), same_rows(shape, 9, same_rng);
  const Guarded out = run_step(*ops, rows, together, spans);
  const auto copied = [&](size_t n) {
    KvRows part(shape, spans[n].rows);
    part.copy(0, same_rows, spans[n].first_row, spans[n].rows);
    return part;
  };
  for (const size_t n : {size_t{1}, size_t{0}}) {
    Span alone = spans[n];
    alone.first_row = 0;
    const Guarded part = run_step(*ops, copied(n), apart, {&alone, 1});
    expect_same_bits(rows_of(out, spans[n].first_row, spans[n].rows), part.values(),
                     cat("sequence ", n));
  }
  const auto same_bytes = [](const View& a, const View& b) {
    return std::memcmp(a.data, b.data, b.bytes()) == 0;
  };
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(same_bytes(together.paged[i], apart.paged[i]));
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bytes(together.tails[i], apart.tails[i]));
}

TEST(RefKvCodesDeathTest, RowsThatMayBeRejectedFitIntoAPage) {
  const Span span{.rows = 9, .record = true};
  EXPECT_DEATH(KvTail(span, 8), "9 rows that may be rejected, pages have 8");
}

}  // namespace
}  // namespace slip
