// Coded caches of every fast backend against the reference, and against itself with other steps,
// threads and rejected rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/ref/kv_codes.h"
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

class KvCodesEqual : public OpsTest {};

// Queries and softmax weights are rounded to 14 and 15 bits, on tensor cores to 11, and softmax is
// computed in float.
constexpr double kTolerance = 6e-4;

// The largest error of a head of a row, relative to what the reference has there.
double worst_error(std::span<const float> got, std::span<const float> right, int64_t head_dim) {
  double worst = 0;
  for (size_t head = 0; head < right.size(); head += size_t(head_dim)) {
    double error = 0, magnitude = 0;
    for (size_t i = head; i < head + size_t(head_dim); ++i) {
      const double difference = double(got[i]) - double(right[i]);
      error += difference * difference;
      magnitude += double(right[i]) * double(right[i]);
    }
    const double relative = error == 0 ? 0 : std::sqrt(error / magnitude);
    worst = std::isnan(relative) ? INFINITY : std::max(worst, relative);
  }
  return worst;
}

// Our cache and the reference's. The reference's is made from what we left in k and v: on its own
// it might round a value to the other neighbour, which would change a code now and then.
struct TwoCaches {
  std::vector<int32_t> pages;  // in no order
  KvStorage ours, right;
  std::unique_ptr<Ops> ref = make_ref_ops();

  TwoCaches(const KvShape& shape, const KvRecipe& recipe, int64_t positions)
      : pages(size_t(positions / kPageLen + 1)),
        ours(recipe, shape, int64_t(pages.size())),
        right(recipe, shape, int64_t(pages.size())) {
    for (size_t i = 0; i < pages.size(); ++i)
      pages[i] = int32_t(i ^ 1) < int32_t(pages.size()) ? int32_t(i ^ 1) : int32_t(i);
  }

  // Returns the queries for attention.
  Guarded store_rows_of(Ops& ops, const KvRows& rows, const Span& span) {
    Guarded q = store(ops, rows, ours.views(), {&span, 1});
    const KvPages kv = right.views();
    store_rows({KvSide::keys, kv.recipe.keys, kv.keys, kv.key_scales, kv.key_tail, rows.k}, span);
    store_rows(
        {KvSide::values, kv.recipe.values, kv.values, kv.value_scales, kv.value_tail, rows.v},
        span);
    return q;
  }

  // Error of our attention for the rows that were stored last.
  double error(Ops& ops, const KvRows& rows, const Span& span, const View& q, float scale) {
    Guarded our_out(q.shape), right_out(q.shape);
    const auto args = [&](const KvStorage& storage, const View& out) {
      return AttentionArgs{.q = q,
                           .kv = storage.views(),
                           .out = out,
                           .scale = scale,
                           .spans = {&span, 1},
                           .k = rows.k,
                           .v = rows.v};
    };
    ops.attention(args(ours, our_out));
    ref->attention(args(right, right_out));
    return worst_error(our_out.values(), right_out.values(), q.shape[2]);
  }
};

// The last rows of `inputs`, behind `context` positions.
double attention_error(Ops& ops, const KvRows& inputs, const KvRecipe& recipe, int64_t context,
                       float scale) {
  const int64_t row_count = inputs.count() - context;
  TwoCaches caches(inputs.shape, recipe, inputs.count());
  if (context > 0) {
    KvRows past(inputs.shape, context);
    past.copy(0, inputs, 0, context);
    caches.store_rows_of(ops, past, {.rows = context, .state_slot = 1, .pages = caches.pages});
  }
  KvRows rows(inputs.shape, row_count);
  rows.copy(0, inputs, context, row_count);
  const Span span{.rows = row_count, .start = context, .state_slot = 1, .pages = caches.pages};
  const Guarded q = caches.store_rows_of(ops, rows, span);
  return caches.error(ops, rows, span, q, scale);
}

void expect_equal_to_ref(Ops& ops, const KvRows& inputs, const KvRecipe& recipe, int64_t context) {
  const float scale = 1.0f / std::sqrt(float(inputs.shape.head_dim));
  EXPECT_LE(attention_error(ops, inputs, recipe, context, scale), kTolerance)
      << describe(inputs.shape, recipe) << ", " << inputs.count() - context << " rows after "
      << context;
}

TEST_P(KvCodesEqual, EveryPairOfCodecs) {
  Rng rng(3);
  for (const KvCodec keys : kCodecs)
    for (const KvCodec values : kCodecs)
      for (const int64_t head_dim : {16, 32, 256, 512})
        expect_equal_to_ref(ops(), KvRows(shape_of(2, 2, head_dim), 203, rng), {keys, values}, 200);
}

// The same for heads that GPUs read in tiles, with so many rows that they are a prompt.
TEST_P(KvCodesEqual, EveryPairOfCodecsInPrompts) {
  Rng rng(17);
  for (const KvCodec keys : kCodecs)
    for (const KvCodec values : kCodecs)
      for (const int64_t head_dim : {256, 512})
        expect_equal_to_ref(ops(), KvRows(shape_of(2, 1, head_dim), 88, rng), {keys, values}, 70);
}

TEST_P(KvCodesEqual, EveryContextAndNumberOfRows) {
  Rng rng(4);
  const KvShape shape = shape_of(2, 1, 32);
  for (const int64_t context : {0, 1, 63, 64, 65, 127, 128, 129, 130, 1025})
    for (int64_t rows = 1; rows <= 9; ++rows)
      expect_equal_to_ref(ops(), KvRows(shape, context + rows, rng), kDefault, context);
  expect_equal_to_ref(ops(), KvRows(shape, 4095 + 2, rng), kDefault, 4095);
}

TEST_P(KvCodesEqual, EveryGroupAndHeadSize) {
  Rng rng(5);
  for (const int64_t head_dim : {32, 64, 128, 256})
    for (const int64_t group : {1, 2, 3, 8, 16})
      expect_equal_to_ref(ops(), KvRows(shape_of(group, 2, head_dim), 192, rng), kDefault, 189);
  expect_equal_to_ref(ops(), KvRows(shape_of(16, 2, 64), 137, rng), kDefault, 128);
}

// More rows than a tile has, from the middle of a page on.
TEST_P(KvCodesEqual, ManyRows) {
  Rng rng(6);
  for (const int64_t group : {1, 8})
    expect_equal_to_ref(ops(), KvRows(shape_of(group, 1, 32), 330, rng), kDefault, 37);
}

// Gemma's full layers: heads of 512, at places where pages and segments of the context end and
// where more segments begin than are added up at once.
TEST_P(KvCodesEqual, WideHeadsAfterEveryContext) {
  Rng rng(13);
  for (const int64_t context : {0, 63, 64, 128, 600})
    for (const int64_t rows : {1, 3})
      expect_equal_to_ref(ops(), KvRows(shape_of(8, 2, 512), context + rows, rng), kDefault,
                          context);
}

// All of Gemma's groups, alone and with drafts that reach into another segment.
TEST_P(KvCodesEqual, WideHeadsOfEveryGroup) {
  Rng rng(14);
  for (const auto& [group, kv_heads] : {std::pair{8, 1}, {4, 2}, {16, 1}, {8, 2}, {8, 4}})
    for (const int64_t rows : {1, 5})
      expect_equal_to_ref(ops(), KvRows(shape_of(group, kv_heads, 512), 125 + rows, rng), kDefault,
                          125);
}

// A prompt, from its beginning, from the middle of a page and behind whole ones. Rows of the step,
// the tail and codes are all read.
TEST_P(KvCodesEqual, WideHeadsOfManyRows) {
  Rng rng(15);
  for (const int64_t context : {0, 37, 128})
    expect_equal_to_ref(ops(), KvRows(shape_of(8, 1, 512), context + 75, rng), kDefault, context);
}

// Pages without anything in them have scales of zero; others are all that counts.
TEST_P(KvCodesEqual, ZerosHaveNoWeightAndNoValue) {
  Rng rng(7);
  for (const int64_t head_dim : {32, 512}) {
    for (const KvCodec codec : kCodecs) {
      const KvRows inputs(shape_of(2, 1, head_dim), 203, rng);
      std::ranges::fill(rows_of(inputs.k, 10, 150), 0.0f);
      std::ranges::fill(rows_of(inputs.v, 0, 128), 0.0f);
      expect_equal_to_ref(ops(), inputs, {codec, codec}, 200);
      std::ranges::fill(inputs.v.values(), 0.0f);
      expect_equal_to_ref(ops(), inputs, {codec, codec}, 200);
    }
  }
}

// Scores far beyond the range of exp, so that most pages have weights of nothing. What a query
// loses by rounding grows with its scores; this looks for infinity and NaN.
TEST_P(KvCodesEqual, HostileScores) {
  Rng rng(8);
  EXPECT_LE(attention_error(ops(), KvRows(shape_of(4, 1, 64), 300, rng), kDefault, 270, 30), 0.1);
}

// Rows are left rotated and rounded: the reference's, or where doubles and floats fall to different
// sides, a neighbour.
TEST_P(KvCodesEqual, RowsAreLeftAsTheTailHoldsThem) {
  Rng rng(12);
  const KvShape shape = shape_of(2, 2, 64);
  const KvRows inputs(shape, 100, rng);
  const std::vector<int32_t> pages = {1, 0};
  const Span span{.rows = 100, .state_slot = 1, .pages = pages};
  KvRows ours(shape, 100), right(shape, 100);
  for (KvRows* rows : {&ours, &right}) rows->copy(0, inputs, 0, 100);
  const KvStorage our_storage(kDefault, shape, 2), right_storage(kDefault, shape, 2);
  store(ops(), ours, our_storage.views(), {&span, 1});
  store(*make_ref_ops(), right, right_storage.views(), {&span, 1});
  expect_close(ours.k.values(), right.k.values(), 2 * unit_roundoff<7>, 1e-6, "keys");
  expect_close(ours.v.values(), right.v.values(), 2 * unit_roundoff<7>, 1e-6, "values");
  for (const Guarded* rows : {&ours.k, &ours.v})
    for (const float value : rows->values()) ASSERT_EQ(bf16_to_float(float_to_bf16(value)), value);
}

struct Outcome {
  std::vector<float> out;
  std::vector<std::byte> contents;
};

Outcome outcome(const KvSequence& sequence) {
  const std::span<const float> out = sequence.out().values();
  return {{out.begin(), out.end()}, sequence.contents()};
}

Outcome run(Ops& ops, const KvRows& inputs, const KvRecipe& recipe,
            const std::vector<int64_t>& steps) {
  KvSequence sequence(ops, inputs, recipe);
  for (const int64_t rows : steps) sequence.step(rows);
  return outcome(sequence);
}

void expect_same(const Outcome& got, const Outcome& expected, const std::string& what) {
  expect_same_bits(got.out, expected.out, what);
  EXPECT_TRUE(got.contents == expected.contents) << what << ": the caches differ";
}

// A sequence that is longer than a segment, and steps to compute it in.
constexpr int64_t kLong = 1100;
constexpr KvRecipe kLongRecipe{KvCodec::tq3, KvCodec::int8};
const std::vector<KvShape> kLongShapes = {shape_of(16, 1, 16), shape_of(2, 2, 32)};

const std::vector<int64_t> kSingleRows(kLong, 1);
const std::vector<std::vector<int64_t>> kLongSteps = {
    {kLong}, {37, 500, 1, 9, 8, 7, 503, 9, 9, 9, 8}, {63, 2, 64, 127, 3, 841}};

// The first of these steps, down to a part of the last, that compute so many rows.
std::vector<int64_t> steps_of(int64_t count, const std::vector<int64_t>& steps) {
  std::vector<int64_t> first;
  for (size_t i = 0; count > 0; ++i) {
    first.push_back(std::min(steps[i], count));
    count -= first.back();
  }
  return first;
}

std::vector<int64_t> short_steps(int64_t count) {
  std::vector<int64_t> steps;
  for (int64_t i = 0; i < count; ++i) steps.push_back(i % 16 + 1);
  return steps_of(count, steps);
}

TEST_P(KvCodesEqual, StepsDoNotMatter) {
  Rng rng(9);
  const int64_t count = GetParam().slow ? 300 : kLong;
  for (const KvShape& shape : kLongShapes) {
    const KvRows inputs(shape, count, rng);
    const Outcome one_by_one = run(ops(), inputs, kLongRecipe, steps_of(count, kSingleRows));
    const auto what = [&](const std::vector<int64_t>& steps) {
      return cat(describe(shape, kLongRecipe), ", ", steps.size(), " steps");
    };
    const std::vector<int64_t> few_rows = short_steps(count);
    expect_same(run(ops(), inputs, kLongRecipe, few_rows), one_by_one, what(few_rows));
    for (const std::vector<int64_t>& long_steps : kLongSteps) {
      const std::vector<int64_t> steps = steps_of(count, long_steps);
      const Outcome outcome = run(ops(), inputs, kLongRecipe, steps);
      if (*std::ranges::max_element(steps) <= tolerance().invariant_rows) {
        expect_same(outcome, one_by_one, what(steps));
      } else {
        EXPECT_LE(worst_error(outcome.out, one_by_one.out, shape.head_dim), 2 * kTolerance)
            << what(steps);
        EXPECT_TRUE(outcome.contents == one_by_one.contents) << what(steps) << ": caches differ";
      }
    }
  }
}

// The same for heads that GPUs read in tiles: around the ends of a page and of as many segments as
// are added up at once, and where many rows take two tiles of queries per block and one takes one.
TEST_P(KvCodesEqual, StepsDoNotMatterToTiles) {
  Rng rng(16);
  constexpr int64_t kRows = 24;
  constexpr KvRecipe kOther{KvCodec::int8, KvCodec::tq3};
  for (const int64_t head_dim : {256, 512}) {
    const KvRows inputs(shape_of(8, 2, head_dim), 1100 + kRows, rng);
    for (const KvRecipe& recipe : {kDefault, kOther}) {
      if (GetParam().slow && (recipe == kOther) != (head_dim == 512)) continue;
      for (const int64_t start : {55, 505, 1100}) {
        const auto rows_in = [&](const std::vector<int64_t>& steps) {
          KvSequence sequence(ops(), inputs, recipe);
          sequence.store_only(start);
          for (const int64_t rows : steps) sequence.step(rows);
          const auto rows = rows_of(sequence.out(), start, kRows);
          return std::vector<float>(rows.begin(), rows.end());
        };
        const std::vector<float> one_by_one = rows_in(std::vector<int64_t>(kRows, 1));
        const std::string what = cat(describe(inputs.shape, recipe), " after ", start);
        expect_same_bits(rows_in({16, 8}), one_by_one, what);
        expect_same_bits(rows_in({2, 3, 4, 15}), one_by_one, what);
        EXPECT_LE(worst_error(rows_in({kRows}), one_by_one, head_dim), 2 * kTolerance) << what;
      }
    }
  }
}

TEST(CpuKvCodes, ThreadsDoNotMatter) {
  Rng rng(9);
  for (const KvShape& shape : kLongShapes) {
    const KvRows inputs(shape, kLong, rng);
    for (const Isa isa : available_isas()) {
      Outcome one_by_one;
      for (const int threads : {2, 1, 3, 4}) {
        ThreadPool pool(threads);
        const std::unique_ptr<Ops> ops = make_cpu_ops(pool, isa);
        ops->reserve({.rows = 512, .q_heads = 32, .head_dim = 256, .context = 8192});
        if (one_by_one.out.empty()) one_by_one = run(*ops, inputs, kLongRecipe, kSingleRows);
        for (const std::vector<int64_t>& steps : kLongSteps)
          expect_same(run(*ops, inputs, kLongRecipe, steps), one_by_one,
                      cat(describe(shape, kLongRecipe), ", ", name_of(isa), ", ", threads,
                          " threads, ", steps.size(), " steps"));
      }
    }
  }
}

// Rejected rows may have completed a page, or begun another, with values that never were.
TEST_P(KvCodesEqual, RejectedRowsLeaveNoTrace) {
  Rng rng(10);
  constexpr int64_t kCount = 140;
  const auto advance = [&](KvSequence& sequence, int64_t end) {
    while (sequence.length() < end)
      sequence.step(std::min(end - sequence.length(), tolerance().invariant_rows));
  };
  for (const int64_t head_dim : {32, 512}) {
    const KvShape shape = shape_of(2, 1, head_dim);
    const KvRows inputs(shape, kCount, rng), wrong(shape, kCount, rng);
    const Outcome clean = run(ops(), inputs, kDefault, std::vector<int64_t>(kCount, 1));
    for (const int64_t start : {1, 55, 60, 63, 64, 119, 127}) {
      for (const int64_t accepted : {0, 1, 4, 8}) {
        KvSequence sequence(ops(), inputs, kDefault);
        advance(sequence, start);
        sequence.tentative_step(9, accepted, wrong);
        sequence.tentative_step(1, 0, wrong);
        advance(sequence, kCount);
        expect_same(outcome(sequence), clean,
                    cat(accepted, " of 9 rows from ", start, ", heads of ", head_dim));
      }
    }
  }
}

// Two sequences in one step, their pages mixed, against each alone.
TEST_P(KvCodesEqual, SequencesDoNotMix) {
  Rng rng(11);
  for (const int64_t head_dim : {32, 512}) {
    const KvShape shape = shape_of(2, 2, head_dim);
    const KvRows both(shape, 200 + 70, rng);
    const std::vector<int32_t> tables[2] = {{5, 1, 2, 0}, {3, 4}};
    const Span spans[2] = {{.first_row = 0, .rows = 200, .state_slot = 1, .pages = tables[0]},
                           {.first_row = 200, .rows = 70, .state_slot = 0, .pages = tables[1]}};
    const auto run_spans = [&](std::initializer_list<std::span<const Span>> steps) {
      KvRows rows(shape, both.count());
      rows.copy(0, both, 0, both.count());
      const KvStorage storage(kDefault, shape, 6);
      std::vector<float> out;
      for (const std::span<const Span> step : steps) {
        const Guarded result = run_step(ops(), rows, storage, step);
        for (const Span& span : step) {
          const auto part = rows_of(result, span.first_row, span.rows);
          out.insert(out.end(), part.begin(), part.end());
        }
      }
      return out;
    };
    const std::vector<float> together = run_spans({spans});
    const std::vector<float> apart = run_spans({{spans, 1}, {spans + 1, 1}});
    if (both.count() <= tolerance().invariant_rows)
      expect_same_bits(together, apart, "two sequences");
    else
      EXPECT_LE(worst_error(together, apart, shape.head_dim), 2 * kTolerance) << "two sequences";
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, KvCodesEqual, ::testing::ValuesIn(fast_backends()),
                         name_of_backend);

}  // namespace
}  // namespace slip
