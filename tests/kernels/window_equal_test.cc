// Attention to the last positions alone, over rings of pages and over all pages, and attention of
// queries that have no keys of their own, on every backend.
#include <algorithm>
#include <cmath>

#include "tests/kernels/kv_sequence.h"

namespace slip {
namespace {

constexpr int64_t kMostStep = 20;

struct WindowCase {
  KvShape shape;
  KvCodec codec;
  int64_t window;
};

constexpr WindowCase kCases[] = {
    {{1, 1, 16, 16}, KvCodec::f32, 1},    {{4, 2, 16, 16}, KvCodec::f32, 5},
    {{6, 2, 36, 64}, KvCodec::f32, 24},   {{8, 1, 64, 64}, KvCodec::bf16, 64},
    {{4, 4, 32, 64}, KvCodec::fp8, 100},  {{8, 2, 512, 64}, KvCodec::bf16, 65},
    {{2, 1, 16, 64}, KvCodec::f32, 1500},
};

class WindowEqual : public OpsTest {
 protected:
  static int64_t ring_pages(const WindowCase& test) {
    return (test.window + kMostStep - 2) / test.shape.page_len + 2;
  }

  // Runs all rows through a ring in the second of two slots, in steps that `next_step` chooses.
  template <class NextStep>
  Guarded run_ring(const WindowCase& test, const KvRows& inputs, const NextStep& next_step) {
    const int64_t ring = ring_pages(test);
    const KvStorage storage({test.codec, test.codec}, test.shape, 2 * ring);
    KvPages pages = storage.views();
    pages.ring_pages = ring;
    Guarded out(inputs.q.view().shape);
    for (int64_t done = 0; done < inputs.count();) {
      const int64_t rows = std::min(next_step(), inputs.count() - done);
      KvRows step(test.shape, rows);
      step.copy(0, inputs, done, rows);
      const Span span{.rows = rows, .start = done, .state_slot = 1};
      run(ops(), step, pages, test.window, span, out.view().slice(done, rows));
      done += rows;
    }
    return out;
  }

  void run(Ops& on, const KvRows& rows, const KvPages& pages, int64_t window, const Span& span,
           const View& out) {
    const Guarded q = store(on, rows, pages, {&span, 1});
    on.attention(
        {.q = q, .kv = pages, .out = out, .scale = 0.3f, .spans = {&span, 1}, .window = window});
  }
};

TEST_P(WindowEqual, RingsHoldWhatAWindowSees) {
  Rng rng(1);
  for (WindowCase test : kCases) {
    if (GetParam().slow) test.window = std::min<int64_t>(test.window, 200);
    const int64_t length = std::min(3 * test.window + 90, test.window + 600);
    const KvRows inputs(test.shape, length, rng);
    // The truth: all positions, computed in one go.
    const int64_t count = length / test.shape.page_len + 1;
    const KvStorage storage({test.codec, test.codec}, test.shape, count);
    std::vector<int32_t> table;
    for (int64_t i = 0; i < count; ++i) table.push_back(int32_t(count - 1 - i));
    const Span whole{.rows = length, .start = 0, .pages = table};
    Guarded right(inputs.q.view().shape);
    run(ref(), inputs, storage.views(), test.window, whole, right);

    const Guarded steps = run_ring(test, inputs, [&] { return rng.integer(1, kMostStep); });
    const Guarded single = run_ring(test, inputs, [] { return int64_t{1}; });
    const int64_t most = std::min(kMostStep, tolerance().invariant_rows);
    const Guarded few = run_ring(test, inputs, [&] { return rng.integer(1, most); });
    const std::string what = cat("window of ", test.window, ", heads of ", test.shape.head_dim);
    // Keys that a backend rounds to the other neighbour (bf16: a part in 256, fp8: in 16) move
    // scores of up to 0.3 * head_dim a little; most do not.
    const double error = test.codec == KvCodec::f32 ? 1e-4 : 0.05;
    expect_close(steps.values(), right.values(), 0, error, what);
    expect_same_bits(single.values(), few.values(), what + ", row by row");
  }
}

// What never was inside the window does not matter: the first positions are changed.
TEST_P(WindowEqual, NothingBehindTheWindowIsSeen) {
  Rng rng(2);
  const KvShape shape{4, 2, 32, 64};
  constexpr int64_t kWindow = 70, kLength = 200;
  const KvRows inputs(shape, kLength, rng), other(shape, kLength, rng);
  KvRows changed(shape, kLength);
  changed.copy(0, other, 0, kLength - kWindow);
  changed.copy(kLength - kWindow, inputs, kLength - kWindow, kWindow);
  const WindowCase test{shape, KvCodec::f32, kWindow};
  const Guarded a = run_ring(test, inputs, [] { return int64_t{7}; });
  const Guarded b = run_ring(test, changed, [] { return int64_t{7}; });
  expect_same_bits(rows_of(a, kLength - 1, 1), rows_of(b, kLength - 1, 1), "the last row");
  EXPECT_NE(std::memcmp(rows_of(a, kLength - 2, 1).data(), rows_of(b, kLength - 2, 1).data(),
                        rows_of(a, kLength - 2, 1).size_bytes()),
            0)
      << "the row before it still sees one of them";
}

TEST_P(WindowEqual, QueriesAloneAreRotatedAsBesideKeys) {
  Rng rng(3);
  const KvShape shape{6, 2, 48, 16};
  const KvRows inputs(shape, 9, rng);
  const KvStorage storage({KvCodec::f32, KvCodec::f32}, shape, 1);
  const int32_t page = 0;
  const Span span{.rows = 9, .start = 0, .pages = {&page, 1}};
  const Guarded scale = random_tensor({shape.head_dim}, rng);
  Guarded both(inputs.q.view().shape), alone(inputs.q.view().shape);
  RotateAndStoreArgs args{.q = inputs.q,
                          .k = inputs.k,
                          .v = inputs.v,
                          .q_scale = scale,
                          .k_scale = scale,
                          .eps = 1e-6f,
                          .cos = inputs.cos,
                          .sin = inputs.sin,
                          .out_q = both,
                          .kv = storage.views(),
                          .spans = {&span, 1}};
  ops().rotate_and_store(args);
  args.k = args.v = args.k_scale = View{};
  args.out_q = alone;
  ops().rotate_and_store(args);
  expect_same_bits(alone.values(), both.values(), "queries");
}

TEST_P(WindowEqual, ValuesAreNormedOnTheWayAsBefore) {
  Rng rng(5);
  constexpr int64_t kWindow = 40;
  struct Case {
    KvShape shape;
    const char* recipe;
    int64_t length;
    double error;
  };
  for (const Case& test : {Case{{4, 2, 48, 64}, "f32", 70, 1e-3},
                           {{4, 1, 512, 64}, "f32", 70, 1e-3},
                           {{4, 2, 256, 64}, "bf16", 70, 0.02},
                           {{4, 1, 512, 64}, "k4v4", 70, 5e-3},
                           {{4, 2, 128, 64}, "k4v4", 9, 5e-3}}) {
    const KvShape& shape = test.shape;
    const int64_t length = test.length;
    const KvRecipe recipe = parse_kv_recipe(test.recipe).value();
    KvRows before(shape, length, rng), on_the_way(shape, length);
    for (float& value : before.v.values()) value *= 3;  // far from what they are when normed
    on_the_way.copy(0, before, 0, length);
    const View heads = before.v.view().reshaped({length * shape.kv_heads, shape.head_dim});
    ref().rms_norm({.x = heads, .scale = {}, .out = heads, .eps = 1e-6f});
    const auto attend = [&](Ops& on, const KvRows& rows, bool norm_v) {
      const KvStorage storage({recipe.keys, recipe.values}, shape, 2);
      const int32_t pages[] = {1, 0};
      const Span span{.rows = length, .start = 0, .pages = pages};
      const Guarded q = store(on, rows, storage.views(), {&span, 1}, norm_v);
      Guarded out(q.view().shape);
      on.attention({.q = q,
                    .kv = storage.views(),
                    .out = out,
                    .scale = 1.0f / std::sqrt(float(shape.head_dim)),
                    .spans = {&span, 1},
                    .k = rows.k,
                    .v = rows.v,
                    .window = recipe.coded() ? 0 : kWindow});
      return out;
    };
    const Guarded right = attend(ref(), before, false), ours = attend(ops(), on_the_way, true);
    expect_close(ours.values(), right.values(), 0, test.error,
                 cat(test.recipe, " ", shape.head_dim));
  }
}

// Questions about stored positions, as drafters ask: with a coded cache, at every place of a page.
TEST_P(WindowEqual, QuestionsAboutStoredPositions) {
  Rng rng(4);
  constexpr int64_t kLength = 200;
  for (const KvShape& shape : {KvShape{4, 2, 64, 64}, KvShape{4, 1, 512, 64}}) {
    const KvRows inputs(shape, kLength, rng);
    for (const char* name : {"f32", "k4v4", "int8"}) {
      const KvRecipe recipe = parse_kv_recipe(name).value();
      for (const int64_t length : {1, 5, 63, 64, 65, 127, 128, 129, 192}) {
        // A prompt in one go, then the last token by itself, as it comes.
        KvSequence ours(ops(), inputs, recipe), right(ref(), inputs, recipe);
        for (KvSequence* sequence : {&ours, &right}) {
          if (length > 2) sequence->store_only(length - 2);
          while (sequence->length() < length) sequence->store_only(1);
        }
        std::vector<int32_t> table;
        for (int64_t i = kLength / 64; i >= 0; --i) table.push_back(int32_t(i));
        table.resize(size_t((length + 63) / 64));  // no page behind the last position
        for (const int64_t rows : {1, 3, 20}) {
          if (rows > length) continue;
          const Span span{.rows = rows, .start = length - rows, .state_slot = 1, .pages = table};
          const View q = inputs.q.view().slice(kLength - rows, rows);
          Guarded our_out(q.shape), right_out(q.shape);
          const auto ask = [&](Ops& on, const KvSequence& sequence, const View& out) {
            on.attention({.q = q,
                          .kv = sequence.storage().views(),
                          .out = out,
                          .scale = 1.0f / std::sqrt(float(shape.head_dim)),
                          .spans = {&span, 1}});
          };
          ask(ops(), ours, our_out);
          ask(ref(), right, right_out);
          expect_close(our_out.values(), right_out.values(), 0, 5e-3,
                       cat(name, ", heads of ", shape.head_dim, ", ", rows, " rows at ", length));
        }
      }
    }
  }
}

SLIP_TEST_BACKENDS(WindowEqual);

}  // namespace
}  // namespace slip
