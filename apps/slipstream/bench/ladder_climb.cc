#include "slipstream/bench/ladder_climb.h"

#include <algorithm>

#include "kernels/cpu/cpu_ops.h"
#include "slipstream/bench/ladder_decode.h"
#include "slipstream/common/loading_bar.h"
#include "slipstream/common/numbers.h"
#include "slipstream/run/stats.h"

namespace slip {
namespace {

constexpr int kRuns = 2;

// Models below this are loaded once per rung, all at the same time.
constexpr uint64_t kSmallModel = uint64_t{200} << 20;

// An answer of fewer tokens says little about speed.
constexpr int64_t kShortAnswer = 16;

// The answer to a test, as it is without drafts.
struct ExpectedAnswer {
  std::vector<int32_t> ids;  // empty when acceptance is simulated: then any text will do
  bool ignores_end = false;
};

// A rung with its weights, and what its answers must be.
struct Loaded {
  const Rung& rung;
  RungResult& result;
  std::unique_ptr<Ops> own_ops{};  // where the rung needs others than the rest
  std::unique_ptr<Engine> engine{};
  std::unique_ptr<Session> session{};
  std::optional<SoloDrafting> drafts{};
  std::optional<SimulatedAcceptance> simulated{};
  std::vector<ExpectedAnswer> expected{};  // to each test
};

class Climb {
 public:
  Climb(const LadderSetup& setup, const std::vector<Rung>& ladder)
      : setup_(setup), ladder_(ladder), expected_(setup.tests.list.size()) {
    for (const Rung& rung : ladder)
      results_.push_back({.name = rung.name, .skipped = rung.skipped});
  }

  Result<std::vector<RungResult>> run() {
    SLIP_TRY(const MemoryPlan plan,
             Engine::plan(setup_.source, options_for(ladder_.front()), *setup_.backend.ops));
    const bool together = plan.weights < kSmallModel;
    std::vector<Loaded> group;
    for (size_t i = 0; i < ladder_.size(); ++i) {
      if (!ladder_[i].skipped.empty()) continue;
      SLIP_TRY(Loaded loaded, load(ladder_[i], results_[i]));
      group.push_back(std::move(loaded));
      if (together) continue;
      SLIP_TRY_STATUS(measure(group));
      group.clear();
    }
    if (together) SLIP_TRY_STATUS(measure(group));
    return std::move(results_);
  }

 private:
  EngineOptions options_for(const Rung& rung) const {
    EngineOptions options;
    options.memory = setup_.memory;
    options.memory.kv = rung.kv;
    options.weights = rung.weights;
    options.max_drafts = rung.drafts ? rung.drafts->most() : 0;
    return options;
  }

  Result<Loaded> load(const Rung& rung, RungResult& result) {
    setup_.doing("loading " + rung.name);
    Loaded loaded{.rung = rung, .result = result};
    if (rung.drafts) loaded.drafts.emplace(*rung.drafts);
    const Backend& backend = setup_.backend;
    if (rung.activation_bytes == 1)
      loaded.own_ops = make_cpu_ops(*backend.pool, backend.isa, rung.activation_bytes);
    Ops& ops = loaded.own_ops ? *loaded.own_ops : *backend.ops;
    SLIP_TRY(loaded.engine, Engine::load(setup_.source, options_for(rung), ops, *backend.pool,
                                         loading_bar(rung.name)));
    loaded.session = std::make_unique<Session>(*loaded.engine);
    loaded.expected = expected_;
    if (setup_.acceptance) {
      loaded.simulated.emplace(*setup_.acceptance);
    } else if (!rung.same_text) {
      SLIP_TRY_STATUS(set_expectations(loaded));
    }
    expected_ = loaded.expected;
    for (size_t i = 0; i < setup_.tests.list.size(); ++i)
      result.tests.push_back({.name = setup_.tests.list[i].name,
                              .prompt_tokens = int64_t(setup_.tests.list[i].prompt.size()),
                              .ignores_end = expected_[i].ignores_end});
    return loaded;
  }

  // The answers of a rung whose numbers are new.
  Status set_expectations(Loaded& loaded) const {
    for (size_t test = 0; test < setup_.tests.list.size(); ++test) {
      SLIP_TRY(GenerateResult answer, decode(loaded, test, nullptr));
      if (answer.finish == FinishReason::stop_token && tokens_of_steps(answer) < kShortAnswer) {
        loaded.expected[test].ignores_end = true;
        SLIP_TRY(answer, decode(loaded, test, nullptr));
      }
      loaded.expected[test].ids = std::move(answer.ids);
    }
    return {};
  }

  Result<GenerateResult> decode(Loaded& loaded, size_t test, SoloDrafting* drafts) const {
    DecodeRequest request{.prompt = setup_.tests.list[test].prompt,
                          .max_tokens = setup_.tests.list[test].max_tokens,
                          .usable_tokens = setup_.tests.usable_tokens,
                          .drafts = drafts,
                          .simulated = loaded.simulated ? &*loaded.simulated : nullptr};
    if (!loaded.expected[test].ignores_end && !setup_.acceptance)
      request.stop_ids = setup_.tests.stop_ids;
    return decode_greedily(*loaded.session, request);
  }

  Status measure(std::vector<Loaded>& group) {
    for (int run = 0; run < kRuns; ++run)
      for (size_t test = 0; test < setup_.tests.list.size(); ++test) {
        setup_.doing(cat("run ", run + 1, "/", kRuns, " ", setup_.tests.list[test].name,
                         group.size() == 1 ? " " + group.front().rung.name : ""));
        SLIP_TRY_STATUS(measure_test(group, test));
      }
    for (const Loaded& loaded : group) {
      double sum = 0;
      for (const TestResult& test : loaded.result.tests) sum += test.reported().tokens_per_second();
      setup_.done(cat(loaded.rung.name, ": ", describe_rate(sum / double(setup_.tests.list.size())),
                      " tok/s"));
    }
    return {};
  }

  // The rungs take turns until each has decoded for long enough.
  Status measure_test(std::vector<Loaded>& group, size_t test) const {
    std::vector<std::vector<GenerateResult>> answers(group.size());
    std::vector<double> seconds(group.size());
    for (bool enough = false; !enough;) {
      enough = true;
      for (size_t i = 0; i < group.size(); ++i) {
        if (seconds[i] >= setup_.seconds && !answers[i].empty()) continue;
        SoloDrafting* drafts = group[i].drafts ? &*group[i].drafts : nullptr;
        SLIP_TRY(GenerateResult answer, decode(group[i], test, drafts));
        SLIP_TRY_STATUS(check_text(group[i], test, answer));
        seconds[i] += answer.decode_seconds;
        answers[i].push_back(std::move(answer));
        enough &= seconds[i] >= setup_.seconds;
      }
    }
    for (size_t i = 0; i < group.size(); ++i)
      group[i].result.tests[test].runs.push_back(median_run(*group[i].engine, answers[i]));
    return {};
  }

  Status check_text(const Loaded& loaded, size_t test, const GenerateResult& answer) const {
    const std::vector<int32_t>& expected = loaded.expected[test].ids;
    if (expected.empty() || answer.ids == expected) return {};
    const auto [ours, theirs] =
        std::mismatch(answer.ids.begin(), answer.ids.end(), expected.begin(), expected.end());
    return error("drafts changed the text, which they never may: \"", loaded.rung.name,
                 "\" differs in test \"", setup_.tests.list[test].name, "\" from token ",
                 ours - answer.ids.begin() + 1,
                 " on. This is a bug in slipstream; please report it");
  }

  static TestRun median_run(Engine& engine, std::vector<GenerateResult>& answers) {
    const auto rate = [](const GenerateResult& answer) {
      return double(tokens_of_steps(answer)) / answer.decode_seconds;
    };
    std::sort(answers.begin(), answers.end(),
              [&](const auto& a, const auto& b) { return rate(a) < rate(b); });
    const GenerateResult& median = answers[answers.size() / 2];
    const double bytes = decode_traffic(engine, median).bytes_per_token * double(median.ids.size());
    return {.tokens = tokens_of_steps(median),
            .seconds = median.decode_seconds,
            .drafts = median.drafts,
            .bytes_per_step = bytes / double(median.drafts.steps),
            .repetitions = int64_t(answers.size())};
  }

  const LadderSetup& setup_;
  const std::vector<Rung>& ladder_;
  std::vector<RungResult> results_;
  std::vector<ExpectedAnswer> expected_;  // to each test, by the last rung with new numbers
};

}  // namespace

Result<std::vector<RungResult>> climb_ladder(const LadderSetup& setup,
                                             const std::vector<Rung>& ladder) {
  return Climb(setup, ladder).run();
}

}  // namespace slip
