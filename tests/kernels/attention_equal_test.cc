// rotate_and_store and attention of every backend against the reference.
#include <algorithm>
#include <cmath>

#include "base/function_ref.h"
#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

struct HeadShape {
  int64_t q_heads, kv_heads, head_dim, page_len;
  DType kv_type;
};

struct Length {
  int64_t start, rows;
};
using Lengths = std::vector<Length>;

// Sequences in a pool of pages, each with pages in no order. Pages that nobody owns, and positions
// that nobody has reached, hold NaN.
struct Sequences {
  std::vector<std::vector<int32_t>> tables;
  std::vector<Span> spans;
  int64_t rows = 0;
  int64_t pages = 0;

  Sequences(const Lengths& lengths, int64_t page_len, Rng& rng) {
    for (const Length& length : lengths) pages += (length.start + length.rows) / page_len + 3;
    std::vector<int32_t> order(size_t(pages), 0);
    for (size_t i = 0; i < order.size(); ++i) order[i] = int32_t(i);
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[size_t(rng.integer(0, int64_t(i) - 1))]);
    size_t next = 0;
    for (const Length& length : lengths) {
      const size_t needed = size_t((length.start + length.rows + page_len - 1) / page_len);
      tables.emplace_back(order.begin() + int64_t(next), order.begin() + int64_t(next + needed));
      next += needed + 1;  // one page between stays unused
    }
    for (const Length& length : lengths) {
      spans.push_back({.first_row = rows,
                       .rows = length.rows,
                       .start = length.start,
                       .state_slot = 0,
                       .pages = tables[spans.size()]});
      rows += length.rows;
    }
  }
};

void write_value(const View& view, int64_t index, float value) {
  switch (view.dtype) {
    case DType::bf16: view.as<uint16_t>(DType::bf16)[index] = float_to_bf16(value); break;
    case DType::fp8_e4m3: view.as<uint8_t>(DType::fp8_e4m3)[index] = float_to_fp8(value); break;
    default: view.f32()[index] = value;
  }
}

float read_value(const View& view, int64_t index) {
  switch (view.dtype) {
    case DType::bf16: return bf16_to_float(view.as<uint16_t>(DType::bf16)[index]);
    case DType::fp8_e4m3: return fp8_to_float(view.as<uint8_t>(DType::fp8_e4m3)[index]);
    default: return view.f32()[index];
  }
}

KvCodec codec_of(DType dtype) {
  return dtype == DType::bf16 ? KvCodec::bf16 : dtype == DType::f32 ? KvCodec::f32 : KvCodec::fp8;
}

struct Cache {
  Guarded keys, values;
  KvPages pages() const {
    const KvCodec codec = codec_of(keys.view().dtype);
    return {keys, values, {codec, codec}};
  }

  Cache(const HeadShape& shape, int64_t count)
      : keys({count, shape.kv_heads, shape.page_len, shape.head_dim}, shape.kv_type),
        values({count, shape.kv_heads, shape.page_len, shape.head_dim}, shape.kv_type) {}
  Cache(const Cache& other) : keys(copy_of(other.keys)), values(copy_of(other.values)) {}

  // Fills positions [0, end) of a sequence.
  void fill(const HeadShape& shape, const Span& span, int64_t end, Rng& rng, double scale) {
    fill(
        shape, span, end, [&] { return float(rng.normal() * scale); },
        [&] { return float(rng.normal()); });
  }
  void fill(const HeadShape& shape, const Span& span, int64_t end, FunctionRef<float()> key,
            FunctionRef<float()> value) {
    for (int64_t p = 0; p < end; ++p) {
      const int64_t page = span.pages[size_t(p / shape.page_len)];
      for (int64_t h = 0; h < shape.kv_heads; ++h) {
        const int64_t at = ((page * shape.kv_heads + h) * shape.page_len + p % shape.page_len);
        for (int64_t i = at * shape.head_dim; i < (at + 1) * shape.head_dim; ++i) {
          write_value(keys, i, key());
          write_value(values, i, value());
        }
      }
    }
  }
};

constexpr HeadShape kHeadShapes[] = {
    {1, 1, 8, 4, DType::f32},        {4, 2, 16, 16, DType::f32},
    {6, 2, 33, 5, DType::f32},       {8, 2, 64, 16, DType::bf16},
    {3, 1, 17, 16, DType::bf16},     {16, 2, 256, 64, DType::bf16},
    {4, 4, 128, 64, DType::bf16},    {8, 2, 64, 16, DType::fp8_e4m3},
    {3, 1, 17, 16, DType::fp8_e4m3}, {16, 2, 256, 64, DType::fp8_e4m3},
};

std::string describe(const HeadShape& s) {
  return cat(s.q_heads, "/", s.kv_heads, " heads of ", s.head_dim, ", pages of ", s.page_len, " ",
             name_of(s.kv_type));
}

class AttentionEqual : public OpsTest {
 protected:
  // Scores are dot products; an error of a score changes a probability by that share. The mix is a
  // sum over all positions, of values of at most 6 (Rng::normal).
  double bound(const HeadShape& shape, int64_t length, double largest_score) {
    const double score_error = largest_score * double(shape.head_dim + 4) * kRoundoff;
    return 6 * (2 * score_error + 2 * exp_error() + double(2 * length + 16) * kRoundoff);
  }

  // Of sequences whose keys are all zero, with a row each that ends at a power of two.
  void expect_exact_mean(const HeadShape& shape, const Lengths& lengths, Rng& rng);
};

void AttentionEqual::expect_exact_mean(const HeadShape& shape, const Lengths& lengths, Rng& rng) {
  const Sequences step(lengths, shape.page_len, rng);
  Cache cache(shape, step.pages);
  for (const Span& span : step.spans)
    cache.fill(
        shape, span, span.start + 1, [&] { return 0.0f; }, [&] { return float(rng.nonzero(9)); });
  const Shape out_shape{step.rows, shape.q_heads, shape.head_dim};
  const Guarded q = random_tensor(out_shape, rng);
  Guarded right(out_shape), ours(out_shape);
  ref().attention({.q = q, .kv = cache.pages(), .out = right, .scale = 1, .spans = step.spans});
  ops().attention({.q = q, .kv = cache.pages(), .out = ours, .scale = 1, .spans = step.spans});
  expect_same_bits(
      ours.values(), right.values(),
      cat("mean of values, ", describe(shape), ", ", lengths[0].start + 1, " positions"));
}

// scale * sum |q| |k| is at most this.
double largest_score(const View& q, float scale, double key_limit) {
  double largest = 0;
  const int64_t dim = q.shape[2];
  for (int64_t h = 0; h < q.count() / dim; ++h) {
    double sum = 0;
    for (int64_t i = 0; i < dim; ++i) sum += std::fabs(double(q.f32()[h * dim + i])) * key_limit;
    largest = std::max(largest, sum * double(scale));
  }
  return largest;
}

TEST_P(AttentionEqual, Attention) {
  Rng rng(1);
  for (const HeadShape& shape : kHeadShapes) {
    for (const Lengths& lengths :
         std::vector<Lengths>{{{0, 1}},
                              {{0, 5}},
                              {{0, 65}},
                              {{3, 8}},
                              {{127, 2}},
                              {{1100, 3}},
                              {{0, 1}, {300, 1}, {15, 3}, {16, 7}, {1, 1}},
                              {{0, 1}, {300, 1}, {15, 3}, {16, 17}, {1, 1}}}) {
      const Sequences step(lengths, shape.page_len, rng);
      Cache cache(shape, step.pages);
      int64_t longest = 0;
      for (const Span& span : step.spans) {
        cache.fill(shape, span, span.start + span.rows, rng, 1);
        longest = std::max(longest, span.start + span.rows);
      }
      const Shape out_shape{step.rows, shape.q_heads, shape.head_dim};
      const Guarded q = random_tensor(out_shape, rng);
      const float scale = 1.0f / std::sqrt(float(shape.head_dim));
      Guarded right(out_shape), ours(out_shape);
      ref().attention(
          {.q = q, .kv = cache.pages(), .out = right, .scale = scale, .spans = step.spans});
      ops().attention(
          {.q = q, .kv = cache.pages(), .out = ours, .scale = scale, .spans = step.spans});
      const std::string what =
          cat("attention, ", describe(shape), ", ", step.rows, " rows, ", longest, " positions");
      // Rng::normal is at most 6 away from 0.
      const double allowed = bound(shape, longest, largest_score(q, scale, 6));
      expect_close(ours.values(), right.values(), 0, allowed, what);

      // One row at a time; what later rows stored must not show.
      Guarded single(out_shape);
      for (const Span& span : step.spans) {
        for (int64_t t = 0; t < span.rows; ++t) {
          Span one = span;
          one.first_row += t;
          one.start += t;
          one.rows = 1;
          ops().attention(
              {.q = q, .kv = cache.pages(), .out = single, .scale = scale, .spans = {&one, 1}});
        }
      }
      expect_close(single.values(), right.values(), 0, allowed, what + ", row by row");
      if (step.rows <= tolerance().invariant_rows)
        expect_same_bits(ours.values(), single.values(), what + ", against row by row");
      if (HasFailure()) return;
    }
  }
}

// One position that takes all the weight; scores far beyond the range of exp. The bound is wide
// then: what this looks for is infinity and NaN.
TEST_P(AttentionEqual, HostileScores) {
  Rng rng(2);
  for (const HeadShape& shape : kHeadShapes) {
    const Sequences step({{40, 3}}, shape.page_len, rng);
    Cache cache(shape, step.pages);
    cache.fill(shape, step.spans[0], 43, rng, 30);
    const Shape out_shape{step.rows, shape.q_heads, shape.head_dim};
    const Guarded q = random_tensor(out_shape, rng, 30);
    Guarded right(out_shape), ours(out_shape);
    ref().attention({.q = q, .kv = cache.pages(), .out = right, .scale = 1, .spans = step.spans});
    ops().attention({.q = q, .kv = cache.pages(), .out = ours, .scale = 1, .spans = step.spans});
    expect_close(ours.values(), right.values(), 0, bound(shape, 43, largest_score(q, 1, 6 * 30)),
                 cat("hostile scores, ", describe(shape)));
  }
}

// All keys equal: the mean of the values, which are small integers, over a power of two. So nothing
// may be left out, seen twice, or taken from elsewhere.
TEST_P(AttentionEqual, EqualScoresAreTheExactMean) {
  Rng rng(3);
  for (const HeadShape& shape : kHeadShapes)
    expect_exact_mean(shape, {{31, 1}, {63, 1}, {0, 1}}, rng);
}

// Where random values would be lost in their mean. GPUs divide contexts ever more coarsely from 4K,
// 16K and 64K positions on; the first shape is how models have them.
TEST_P(AttentionEqual, LongContextsAreTheExactMean) {
  Rng rng(5);
  expect_exact_mean({16, 2, 256, 64, DType::bf16}, {{4095, 1}, {8191, 1}}, rng);
  for (const int64_t length : {16384, 32768, 131072})
    expect_exact_mean({4, 1, 128, 64, DType::bf16}, {{length - 1, 1}}, rng);
}

std::vector<float> as_floats(const View& view) {
  std::vector<float> floats;
  for (int64_t i = 0; i < view.count(); ++i) floats.push_back(read_value(view, i));
  return floats;
}

// Twice the rounding error of a stored number.
double neighbour_distance(DType dtype, float value) {
  const double magnitude = std::fabs(double(value));
  switch (dtype) {
    case DType::bf16: return 2 * unit_roundoff<7> * magnitude;
    case DType::fp8_e4m3: return std::max(2 * unit_roundoff<3> * magnitude, 0x1p-9);
    default: return 0;
  }
}

// Values are stored as they are; keys may differ by the rounding of the float and, in bf16 and fp8,
// by which of two neighbours that falls to. What was NaN, because it belongs to nobody, still is.
void expect_caches(const Cache& got, const Cache& right, double error, const std::string& what) {
  EXPECT_EQ(
      std::memcmp(got.values.view().data, right.values.view().data, right.values.view().bytes()), 0)
      << what << ", values";
  const std::vector<float> ours = as_floats(got.keys), expected = as_floats(right.keys);
  std::vector<float> written, expected_written;
  std::vector<double> allowed;
  for (size_t i = 0; i < ours.size(); ++i) {
    ASSERT_EQ(std::isnan(ours[i]), std::isnan(expected[i])) << what << ", key value " << i;
    if (std::isnan(ours[i])) continue;
    written.push_back(ours[i]);
    expected_written.push_back(expected[i]);
    allowed.push_back(error + neighbour_distance(right.keys.view().dtype, expected[i]));
  }
  expect_within(written, expected_written, allowed, what + ", keys");
}

TEST_P(AttentionEqual, RotateAndStore) {
  Rng rng(4);
  for (const HeadShape& shape : kHeadShapes) {
    const Sequences step({{0, 3}, {2 * shape.page_len - 1, 2}, {7, 1}, {0, 20}}, shape.page_len,
                         rng);
    const int64_t dim = shape.head_dim;
    for (const int64_t pairs : {dim / 2, dim / 8}) {
      if (pairs == 0) continue;
      for (const int64_t stride : {dim, 2 * dim}) {
        const Guarded q = random_tensor({step.rows, shape.q_heads, stride}, rng);
        const Guarded k = random_tensor({step.rows, shape.kv_heads, dim}, rng);
        const Guarded v = random_tensor({step.rows, shape.kv_heads, dim}, rng);
        const Guarded q_scale = random_tensor({dim}, rng), k_scale = random_tensor({dim}, rng);
        Guarded cos({step.rows, pairs}), sin({step.rows, pairs});
        for (size_t i = 0; i < cos.values().size(); ++i) {
          const double angle = rng.uniform(0, 6.3);
          cos.values()[i] = float(std::cos(angle));
          sin.values()[i] = float(std::sin(angle));
        }
        Cache before(shape, step.pages);
        for (const Span& span : step.spans) before.fill(shape, span, span.start, rng, 1);
        const auto run = [&](Ops& backend, const Cache& cache, const View& out_q,
                             std::span<const Span> spans) {
          backend.rotate_and_store({.q = q,
                                    .k = k,
                                    .v = v,
                                    .q_scale = q_scale,
                                    .k_scale = k_scale,
                                    .eps = 1e-6f,
                                    .cos = cos,
                                    .sin = sin,
                                    .out_q = out_q,
                                    .kv = cache.pages(),
                                    .spans = spans});
        };
        const Cache right_cache(before), ours_cache(before), single_cache(before);
        const Shape out_shape{step.rows, shape.q_heads, dim};
        Guarded right(out_shape), ours(out_shape), single(out_shape);
        run(ref(), right_cache, right, step.spans);
        run(ops(), ours_cache, ours, step.spans);
        for (const Span& span : step.spans) {
          for (int64_t t = 0; t < span.rows; ++t) {
            Span one = span;
            one.first_row += t;
            one.start += t;
            one.rows = 1;
            run(ops(), single_cache, single, {&one, 1});
          }
        }
        const std::string what = cat("rotate_and_store, ", describe(shape), ", ", pairs, " pairs");
        // Two terms that may cancel. x / rms is at most sqrt(dim), the scales at most 6.
        const double magnitude = 2 * 6 * std::sqrt(double(dim));
        const double error = magnitude * (double(dim) / 2 + 12) * kRoundoff;
        expect_close(ours.values(), right.values(), 0, error, what + ", queries");
        expect_same_bits(single.values(), ours.values(), what + ", queries row by row");
        expect_caches(ours_cache, right_cache, error, what);
        EXPECT_EQ(std::memcmp(single_cache.keys.view().data, ours_cache.keys.view().data,
                              ours_cache.keys.view().bytes()),
                  0)
            << what;
        if (HasFailure()) return;
      }
    }
  }
}

SLIP_TEST_BACKENDS(AttentionEqual);

}  // namespace
}  // namespace slip
