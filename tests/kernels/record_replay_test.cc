// Rows that may be rejected: a sequence computed with any mixture of tentative and certain steps
// has the bits of one computed token by token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/cpu_ops.h"
#include "tests/kernels/op_cases.h"

namespace slip {
namespace {

struct LayerShape {
  int64_t key_heads, value_heads, key_dim, value_dim;
  int64_t conv_width;
  int64_t record_rows;

  int64_t channels() const { return 2 * key_heads * key_dim + value_heads * value_dim; }
  int64_t history() const { return conv_width - 1; }
  std::string describe() const {
    return cat(value_heads, "/", key_heads, " heads of ", key_dim, " x ", value_dim, ", width ",
               conv_width, ", ", record_rows, " record rows");
  }
};

struct Weights {
  Guarded conv, rate, dt_bias;

  Weights(const LayerShape& s, Rng& rng)
      : conv(random_tensor({s.conv_width, s.channels()}, rng)),
        rate(random_tensor({s.value_heads}, rng)),
        dt_bias(random_tensor({s.value_heads}, rng)) {
    for (float& value : rate.values()) value = std::exp(value);
  }
};

// What a layer remembers. Tails and states start with something; records with NaN, so that reading
// what was never recorded shows.
struct Memory {
  LayerShape shape;
  Guarded tail, state, keys, deltas, decays;

  Memory(const LayerShape& s, int64_t slots)
      : shape(s),
        tail({slots, s.history() + s.record_rows, s.channels()}),
        state({slots, s.value_heads, s.key_dim, s.value_dim}),
        keys({2 * slots, s.record_rows, s.key_heads, s.key_dim}),
        deltas({2 * slots, s.record_rows, s.value_heads, s.value_dim}),
        decays({2 * slots, s.record_rows, s.value_heads}) {}

  DeltaRecord record() const { return {keys, deltas, decays}; }
  std::span<float> tail_of(int32_t slot) const {
    return rows_of(tail, slot, 1).first(size_t(shape.history() * shape.channels()));
  }
  std::span<float> state_of(int32_t slot) const { return rows_of(state, slot, 1); }

  // The same beginning for the same seed, whatever else differs.
  void begin(uint64_t seed) const {
    Rng rng(seed);
    for (int32_t slot = 0; slot < tail.view().shape[0]; ++slot) {
      for (float& value : tail_of(slot)) value = float(rng.normal());
      for (float& value : state_of(slot)) value = float(rng.normal());
    }
  }
};

// The rows of a step, or of a sequence, and what becomes of them.
struct Rows {
  Guarded x, a, b;
  Guarded conv_out, out;

  Rows(const LayerShape& s, int64_t rows)
      : x({rows, s.channels()}),
        a({rows, s.value_heads}),
        b({rows, s.value_heads}),
        conv_out({rows, s.channels()}),
        out({rows, s.value_heads, s.value_dim}) {}

  int64_t count() const { return x.view().shape[0]; }
  void randomize(int64_t row, Rng& rng) const {
    for (const Guarded* tensor : {&x, &a, &b})
      for (float& value : rows_of(*tensor, row, 1)) value = float(rng.normal());
  }
  void copy_input(int64_t row, const Rows& from, int64_t from_row) const {
    const auto copy = [&](const Guarded& target, const Guarded& source) {
      const std::span<float> values = rows_of(source, from_row, 1);
      std::copy(values.begin(), values.end(), rows_of(target, row, 1).begin());
    };
    copy(x, from.x), copy(a, from.a), copy(b, from.b);
  }
};

// The convolution and the delta rule behind it, as in a model.
void run_layer(Ops& ops, const Weights& weights, const Memory& memory, const Rows& rows,
               std::span<const Span> spans) {
  ops.causal_conv({.x = rows.x,
                   .weight = weights.conv,
                   .tail = memory.tail,
                   .out = rows.conv_out,
                   .spans = spans});
  ops.delta_net({.qkv = rows.conv_out,
                 .a = rows.a,
                 .b = rows.b,
                 .rate = weights.rate,
                 .dt_bias = weights.dt_bias,
                 .state = memory.state,
                 .record = memory.shape.record_rows > 0 ? memory.record() : DeltaRecord{},
                 .out = rows.out,
                 .key_heads = memory.shape.key_heads,
                 .spans = spans});
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

bool untouched(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isnan(x); });
}

// Mistakes that a caller, or a kernel, could make, once: they must show.
enum class Mistake { none, replays_one_too_few, replays_one_too_many, replays_the_wrong_side };

struct Schedule {
  LayerShape shape;
  int64_t sequences = 3;
  int64_t tokens = 24;  // per sequence
  int64_t most_certain_rows = 8;
  uint64_t seed = 1;
  Mistake mistake = Mistake::none;
};

// Runs the sequences of a schedule token by token, and then again in ragged steps: tentative rows,
// some accepted, certain rows, nothing at all. Returns the first difference, or "".
class MixedRun {
 public:
  MixedRun(const Schedule& schedule, Ops& ops)
      : schedule_(schedule),
        ops_(ops),
        rng_(schedule.seed),
        weights_(schedule.shape, rng_),
        memory_(schedule.shape, schedule.sequences + 1),
        plain_memory_(without_record(schedule.shape), schedule.sequences + 1) {
    for (int64_t i = 0; i < schedule.sequences; ++i)
      sequences_.push_back({.slot = int32_t(schedule.sequences - i),  // slot 0 belongs to nobody
                            .truth = Rows(schedule.shape, schedule.tokens)});
    memory_.begin(schedule.seed);
    plain_memory_.begin(schedule.seed);
  }

  std::string first_difference() {
    for (const Sequence& sequence : sequences_) run_plainly(sequence);
    while (std::any_of(sequences_.begin(), sequences_.end(),
                       [&](const Sequence& s) { return tokens_before_last(s) > 0; }))
      step([&](Sequence& sequence) { return choose(sequence); });
    // A last certain step brings every state up to date.
    step([](Sequence&) { return Choice{.rows = 1, .accepted = 1}; });
    for (const Sequence& sequence : sequences_) {
      note_difference(memory_.state_of(sequence.slot), plain_memory_.state_of(sequence.slot),
                      "state");
      note_difference(memory_.tail_of(sequence.slot), plain_memory_.tail_of(sequence.slot), "tail");
    }
    note_difference(memory_.state_of(0), plain_memory_.state_of(0), "state of nobody");
    note_difference(memory_.tail_of(0), plain_memory_.tail_of(0), "tail of nobody");
    return difference_;
  }

 private:
  struct Sequence {
    int32_t slot;
    Rows truth;
    int64_t length = 0;
    int32_t replay = 0;
    int32_t record_side = 0;
  };
  struct Choice {
    bool takes_part = true;
    bool tentative = false;
    int64_t rows = 0;
    int64_t accepted = 0;
  };

  static LayerShape without_record(LayerShape shape) {
    shape.record_rows = 0;
    return shape;
  }

  int64_t tokens_before_last(const Sequence& sequence) const {
    return schedule_.tokens - 1 - sequence.length;
  }

  void run_plainly(const Sequence& sequence) {
    for (int64_t token = 0; token < schedule_.tokens; ++token) {
      sequence.truth.randomize(token, rng_);
      const Span span{.first_row = token, .rows = 1, .start = token, .state_slot = sequence.slot};
      run_layer(ops_, weights_, plain_memory_, sequence.truth, {&span, 1});
    }
  }

  Choice choose(const Sequence& sequence) {
    const int64_t left = tokens_before_last(sequence);
    const int64_t kind = rng_.integer(0, 9);
    if (kind == 0) return {.takes_part = false};
    if (kind <= 3) {
      const int64_t rows = rng_.integer(0, std::min(left, schedule_.most_certain_rows));
      return {.rows = rows, .accepted = rows};
    }
    const int64_t rows = rng_.integer(0, schedule_.shape.record_rows);
    const int64_t most = std::min(left, rows);
    const int64_t accepted = kind == 4 ? 0 : kind <= 6 ? most : rng_.integer(0, most);
    return {.tentative = true, .rows = rows, .accepted = accepted};
  }

  template <class Choose>
  void step(const Choose& choose) {
    std::vector<Span> spans;
    std::vector<Choice> choices;
    int64_t rows = 0;
    for (Sequence& sequence : sequences_) {
      choices.push_back(choose(sequence));
      if (!choices.back().takes_part) continue;
      rows += rng_.integer(0, 1);  // a row of nobody
      spans.push_back({.first_row = rows,
                       .rows = choices.back().rows,
                       .start = sequence.length,
                       .state_slot = sequence.slot,
                       .record = choices.back().tentative,
                       .replay = sequence.replay,
                       .record_side = sequence.record_side});
      rows += choices.back().rows;
    }
    const Rows batch(schedule_.shape, rows + 1);  // never empty
    auto span = spans.begin();
    for (size_t i = 0; i < sequences_.size(); ++i) {
      if (!choices[i].takes_part) continue;
      for (int64_t r = 0; r < span->rows; ++r) {
        if (r < choices[i].accepted)
          batch.copy_input(span->first_row + r, sequences_[i].truth, span->start + r);
        else
          batch.randomize(span->first_row + r, rng_);
      }
      ++span;
    }
    run_layer(ops_, weights_, memory_, batch, spans);

    span = spans.begin();
    for (size_t i = 0; i < sequences_.size(); ++i) {
      if (!choices[i].takes_part) continue;
      compare_outputs(batch, span->first_row, sequences_[i], choices[i].accepted);
      commit(sequences_[i], choices[i]);
      ++span;
    }
  }

  void compare_outputs(const Rows& batch, int64_t first_row, const Sequence& sequence,
                       int64_t rows) {
    note_difference(rows_of(batch.conv_out, first_row, rows),
                    rows_of(sequence.truth.conv_out, sequence.length, rows), "causal_conv");
    note_difference(rows_of(batch.out, first_row, rows),
                    rows_of(sequence.truth.out, sequence.length, rows), "delta_net");
  }

  // What Cache::commit does.
  void commit(Sequence& sequence, const Choice& choice) {
    sequence.length += choice.accepted;
    sequence.replay = choice.tentative ? int32_t(choice.accepted) : 0;
    if (choice.tentative) sequence.record_side = 1 - sequence.record_side;
    if (choice.tentative && choice.rows > 0) blunder(sequence, choice);
  }

  void blunder(Sequence& sequence, const Choice& choice) {
    switch (schedule_.mistake) {
      case Mistake::none: return;
      case Mistake::replays_one_too_few:
        if (choice.accepted == 0) return;
        --sequence.replay;
        break;
      case Mistake::replays_one_too_many:
        if (choice.accepted == choice.rows) return;
        ++sequence.replay;
        break;
      case Mistake::replays_the_wrong_side:
        if (choice.accepted == 0) return;
        sequence.record_side = 1 - sequence.record_side;
        break;
    }
    schedule_.mistake = Mistake::none;
  }

  void note_difference(std::span<const float> got, std::span<const float> expected,
                       const char* what) {
    if (difference_.empty() && !same_bits(got, expected))
      difference_ = cat(what, " differs: ", schedule_.shape.describe(), ", seed ", schedule_.seed);
  }

  Schedule schedule_;
  Ops& ops_;
  Rng rng_;
  Weights weights_;
  Memory memory_, plain_memory_;
  std::vector<Sequence> sequences_;
  std::string difference_;
};

// Awkward sizes, each with another convolution and record.
std::vector<LayerShape> awkward_shapes() {
  std::vector<LayerShape> shapes;
  constexpr int64_t kWidths[] = {4, 2, 1};
  for (const int64_t key_dim : {3, 5, 128})
    for (const int64_t value_dim : {5, 64, 100, 128})
      for (const int64_t repeat : {1, 2, 4})
        shapes.push_back({.key_heads = 2,
                          .value_heads = 2 * repeat,
                          .key_dim = key_dim,
                          .value_dim = value_dim,
                          .conv_width = kWidths[shapes.size() / 2 % 3],
                          .record_rows = int64_t(shapes.size()) % 9 + 1});
  return shapes;
}

class RecordReplay : public OpsTest {};

TEST_P(RecordReplay, AnyMixtureOfStepsHasTheBitsOfTokenByToken) {
  for (const LayerShape& shape : awkward_shapes()) {
    MixedRun run({.shape = shape, .most_certain_rows = tolerance().exact_delta_rows}, ops());
    EXPECT_EQ(run.first_difference(), "");
  }
}

TEST_P(RecordReplay, ManySchedules) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const LayerShape shape{.key_heads = 1,
                           .value_heads = 2,
                           .key_dim = 5,
                           .value_dim = 18,
                           .conv_width = int64_t(seed) % 4 + 1,
                           .record_rows = int64_t(seed) % 9 + 1};
    MixedRun run({.shape = shape, .sequences = 4, .tokens = 40, .seed = seed}, ops());
    EXPECT_EQ(run.first_difference(), "");
  }
}

TEST_P(RecordReplay, MistakesShow) {
  for (const Mistake mistake : {Mistake::replays_one_too_few, Mistake::replays_one_too_many,
                                Mistake::replays_the_wrong_side}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const LayerShape shape{.key_heads = 1,
                             .value_heads = 2,
                             .key_dim = 5,
                             .value_dim = 18,
                             .conv_width = 4,
                             .record_rows = 3};
      MixedRun run({.shape = shape, .seed = seed, .mistake = mistake}, ops());
      EXPECT_NE(run.first_difference(), "") << "mistake " << int(mistake) << ", seed " << seed;
    }
  }
}

// One step on the same memory, recording and not.
struct OneStep {
  static constexpr int32_t kSlot = 1;
  Weights weights;
  Memory memory;
  Rows rows;

  OneStep(const LayerShape& shape, int64_t count) : OneStep(shape, count, Rng(3)) {}

  void run(Ops& ops, bool record, int32_t side) const {
    const Span span{.first_row = 0,
                    .rows = rows.count(),
                    .state_slot = kSlot,
                    .record = record,
                    .record_side = side};
    run_layer(ops, weights, memory, rows, {&span, 1});
  }

 private:
  OneStep(const LayerShape& shape, int64_t count, Rng rng)
      : weights(shape, rng), memory(shape, 3), rows(shape, count) {
    memory.begin(4);
    for (int64_t row = 0; row < count; ++row) rows.randomize(row, rng);
  }
};

TEST_P(RecordReplay, ARecordingStepComputesTheSameAndLeavesTheStateAlone) {
  for (const LayerShape& shape : awkward_shapes()) {
    SCOPED_TRACE(shape.describe());
    const int64_t rows = std::max<int64_t>(1, shape.record_rows - 1);
    const int32_t side = int32_t(shape.record_rows % 2);
    const OneStep plain(shape, rows), recording(shape, rows), before(shape, rows);
    plain.run(ops(), false, side);
    recording.run(ops(), true, side);
    expect_same_bits(recording.rows.conv_out.values(), plain.rows.conv_out.values(), "conv_out");
    expect_same_bits(recording.rows.out.values(), plain.rows.out.values(), "out");
    expect_same_bits(recording.memory.state.values(), before.memory.state.values(), "state");
    for (int32_t slot = 0; slot < 3; ++slot)
      expect_same_bits(recording.memory.tail_of(slot), before.memory.tail_of(slot), "tail");
    const auto recorded =
        rows_of(recording.memory.tail, OneStep::kSlot, 1)
            .subspan(size_t(shape.history() * shape.channels()), recording.rows.x.values().size());
    expect_same_bits(recorded, recording.rows.x.values(), "recorded inputs");

    // Nothing else is written: not the other side, not other slots, not rows that do not exist.
    const Memory& m = recording.memory;
    for (const Guarded* tensor : {&m.keys, &m.deltas, &m.decays}) {
      for (int32_t index = 0; index < 6; ++index) {
        const std::span<float> row = rows_of(*tensor, index, 1);
        const size_t written = index == 2 * OneStep::kSlot + side
                                   ? row.size() / size_t(shape.record_rows) * size_t(rows)
                                   : 0;
        EXPECT_TRUE(std::none_of(row.begin(), row.begin() + int64_t(written),
                                 [](float x) { return std::isnan(x); }));
        EXPECT_TRUE(untouched(row.subspan(written))) << "side " << index;
      }
    }
  }
}

TEST_P(RecordReplay, RecordsMatchTheReference) {
  for (const LayerShape& shape : awkward_shapes()) {
    SCOPED_TRACE(shape.describe());
    const OneStep ours(shape, 1), right(shape, 1);
    right.run(ref(), true, 0);
    ours.run(ops(), true, 0);
    // Sums of key_dim products; a state of about 1, keys of length 1; the convolution's own error
    // and that of exp before everything.
    const double magnitude = 4 * std::sqrt(double(shape.key_dim)) + 4;
    const double error =
        (double(shape.key_dim) + 8 * double(shape.conv_width)) * kRoundoff + 8 * exp_error();
    expect_close(rows_of(ours.memory.keys, 2, 1).first(size_t(shape.key_heads * shape.key_dim)),
                 rows_of(right.memory.keys, 2, 1).first(size_t(shape.key_heads * shape.key_dim)),
                 error, error, "keys");
    expect_close(
        rows_of(ours.memory.deltas, 2, 1).first(size_t(shape.value_heads * shape.value_dim)),
        rows_of(right.memory.deltas, 2, 1).first(size_t(shape.value_heads * shape.value_dim)),
        error, error * magnitude, "deltas");
    expect_close(rows_of(ours.memory.decays, 2, 1).first(size_t(shape.value_heads)),
                 rows_of(right.memory.decays, 2, 1).first(size_t(shape.value_heads)), 0, error,
                 "decays");
  }
}

SLIP_TEST_BACKENDS(RecordReplay);

TEST(RecordReplayDeathTest, MoreRowsThanTheRecordHoldsAreABug) {
  const LayerShape shape{.key_heads = 1,
                         .value_heads = 1,
                         .key_dim = 2,
                         .value_dim = 2,
                         .conv_width = 2,
                         .record_rows = 2};
  const std::unique_ptr<Ops> ops = make_ref_ops();
  const OneStep step(shape, 3);
  EXPECT_DEATH(step.run(*ops, true, 0), "records 3 rows of 2");
  EXPECT_DEATH(step.run(*ops, false, 2), "record side 2");
  const Span span{.rows = 3, .replay = 3};
  EXPECT_DEATH(run_layer(*ops, step.weights, step.memory, step.rows, {&span, 1}),
               "replay of 3 rows of 2");
}

// Items of one step share a record; more rows than are prepared at a time.
TEST(CpuRecordReplay, AnyNumberOfThreads) {
  for (const Isa isa : available_isas()) {
    for (const int threads : {1, 2, 3, 4}) {
      ThreadPool pool(threads);
      const std::unique_ptr<Ops> ops = make_cpu_ops(pool, isa);
      ops->reserve({});
      for (const int64_t record_rows : {1, 5, 21}) {
        const LayerShape shape{.key_heads = 2,
                               .value_heads = 8,
                               .key_dim = 32,
                               .value_dim = 100,
                               .conv_width = 4,
                               .record_rows = record_rows};
        MixedRun run({.shape = shape, .tokens = 60, .most_certain_rows = 40}, *ops);
        EXPECT_EQ(run.first_difference(), "") << threads << " threads";
      }
    }
  }
}

}  // namespace
}  // namespace slip
