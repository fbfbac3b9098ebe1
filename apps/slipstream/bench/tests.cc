#include "slipstream/bench/tests.h"

#include <algorithm>

#include "base/clock.h"
#include "engine/sampling.h"
#include "engine/session.h"
#include "slipstream/bench/arbitrary_ids.h"
#include "slipstream/bench/users.h"
#include "slipstream/common/numbers.h"

namespace slip {
namespace {

std::vector<int32_t> some_ids(Engine& engine, int64_t count) {
  return arbitrary_ids(count, engine.model().info().vocabulary);
}

Result<double> prompt_rate(Engine& engine, int64_t length, int64_t depth) {
  Session session(engine);
  SLIP_TRY_STATUS(session.feed(some_ids(engine, depth)));
  const std::vector<int32_t> ids = some_ids(engine, length);
  const Stopwatch clock;
  SLIP_TRY_STATUS(session.feed(ids));
  return double(length) / clock.seconds();
}

Result<double> answer_rate(Engine& engine, int64_t length, int64_t depth) {
  Session session(engine);
  // At depth 0 an answer still follows one token.
  const int64_t before = std::max<int64_t>(depth, 1);
  SLIP_TRY_STATUS(session.feed(some_ids(engine, before)));
  // The next token is read off the logits, as in use; its choice is not timed by itself.
  const int64_t vocabulary = engine.model().info().vocabulary;
  Sampler sampler({.temperature = 0}, vocabulary, vocabulary);
  int32_t id = arbitrary_id(0, vocabulary);
  const int64_t fits = std::min(length, engine.context() - before);
  const Stopwatch clock;
  for (int64_t i = 0; i < fits; ++i) {
    SLIP_TRY_STATUS(session.feed({&id, 1}));
    id = sampler.next(session.choice());
  }
  return double(fits) / clock.seconds();
}

// A row with the speed of `rate()`, several times.
template <class Rate>
Result<BenchRow> repeated(std::string test, int64_t depth, int64_t times, const Rate& rate) {
  std::vector<double> rates;
  for (int64_t run = 0; run < times; ++run) {
    SLIP_TRY(const double measured, rate());
    rates.push_back(measured);
  }
  BenchRow row{.test = std::move(test), .depth = depth, .tokens_per_second = median(rates)};
  const auto [low, high] = std::ranges::minmax(rates);
  row.spread = (high - low) / row.tokens_per_second;
  return row;
}

Result<BenchRow> test_prompt(Engine& engine, const BenchTests& tests, int64_t length,
                             int64_t depth) {
  return repeated(cat("pp", length), depth, tests.repeat,
                  [&] { return prompt_rate(engine, length, depth); });
}

Result<BenchRow> test_answer(Engine& engine, const BenchTests& tests, int64_t length,
                             int64_t depth) {
  const std::string name = tests.users ? cat("tg", length, "x", *tests.users) : cat("tg", length);
  SLIP_TRY(BenchRow row, repeated(name, depth, tests.repeat, [&] {
             return tests.users ? users_rate(engine, *tests.users, depth, length)
                                : answer_rate(engine, length, depth);
           }));
  const int64_t users = tests.users.value_or(1);
  const KvRecipe& kv = engine.memory().cache_format.kv;
  // The context grows while the answer is written; its middle stands for all of it.
  const StepCost alone = engine.model().step_cost(1, depth + length / 2, kv);
  // Several rows read more experts than one, and the weights that they share once.
  const StepCost together = users == 1 ? alone : engine.model().step_cost(users, depth, kv);
  row.tokens_per_step = users;
  row.bytes_per_step = together.weight_bytes + uint64_t(users) * alone.cache_bytes;
  row.int8_products_per_step = uint64_t(tests.int8_factors) * together.integer_products;
  return row;
}

}  // namespace

int64_t BenchTests::context() const {
  int64_t longest = 1;
  for (const int64_t depth : depths)
    for (const auto* lengths : {&prompts, &answers})
      for (const int64_t length : *lengths) longest = std::max(longest, depth + length);
  return users ? longest + kUntimedTokens : longest;
}

Result<std::vector<BenchRow>> run_tests(Engine& engine, const BenchTests& tests,
                                        const std::function<void(const BenchRow&)>& done) {
  std::vector<BenchRow> rows;
  const auto add = [&](BenchRow row) {
    done(row);
    rows.push_back(std::move(row));
  };
  for (const int64_t depth : tests.depths) {
    for (const int64_t length : tests.prompts) {
      SLIP_TRY(BenchRow row, test_prompt(engine, tests, length, depth));
      add(std::move(row));
    }
    for (const int64_t length : tests.answers) {
      SLIP_TRY(BenchRow row, test_answer(engine, tests, length, depth));
      add(std::move(row));
    }
  }
  return rows;
}

}  // namespace slip
