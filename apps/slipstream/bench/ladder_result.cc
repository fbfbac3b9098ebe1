#include "slipstream/bench/ladder_result.h"

#include <algorithm>

namespace slip {
namespace {

template <class Figure>
double mean_of(const std::vector<TestResult>& tests, Figure figure) {
  double sum = 0;
  for (const TestResult& test : tests) sum += figure(test.reported());
  return sum / double(tests.size());
}

DraftCounts& operator+=(DraftCounts& sum, const DraftCounts& more) {
  const size_t places = std::max(sum.judged_at.size(), more.judged_at.size());
  sum.judged_at.resize(places);
  sum.accepted_at.resize(places);
  for (size_t i = 0; i < more.judged_at.size(); ++i) {
    sum.judged_at[i] += more.judged_at[i];
    sum.accepted_at[i] += more.accepted_at[i];
  }
  return sum;
}

std::vector<double> acceptance_of(const DraftCounts& drafts) {
  std::vector<double> shares;
  for (size_t i = 0; i < drafts.judged_at.size() && drafts.judged_at[i] > 0; ++i)
    shares.push_back(double(drafts.accepted_at[i]) / double(drafts.judged_at[i]));
  return shares;
}

JsonArray json_list(const std::vector<double>& values) {
  return JsonArray(values.begin(), values.end());
}

JsonObject run_json(const TestRun& run) {
  return {{"tokens", run.tokens},
          {"steps", run.drafts.steps},
          {"seconds", run.seconds},
          {"tokens_per_second", run.tokens_per_second()},
          {"steps_per_second", run.steps_per_second()},
          {"tokens_per_step", run.tokens_per_step()},
          {"acceptance", json_list(acceptance_of(run.drafts))},
          {"bytes_per_step", run.bytes_per_step},
          {"repetitions", run.repetitions}};
}

JsonObject test_json(const TestResult& test) {
  JsonArray runs;
  for (const TestRun& run : test.runs) runs.push_back(run_json(run));
  return {{"name", test.name},
          {"tokens_per_second", test.reported().tokens_per_second()},
          {"prompt_tokens", test.prompt_tokens},
          {"ignored_end_of_text", test.ignores_end},
          {"runs", std::move(runs)}};
}

JsonObject rung_json(const RungResult& rung, bool simulated) {
  JsonArray tests;
  for (const TestResult& test : rung.tests) tests.push_back(test_json(test));
  return {{"name", rung.name},
          {"tokens_per_second", rung.tokens_per_second},
          {"steps_per_second", rung.steps_per_second},
          {"tokens_per_step", rung.tokens_per_step},
          {"acceptance", json_list(rung.acceptance)},
          {"bytes_per_step", rung.bytes_per_step},
          {"gb_per_s", rung.bytes_per_second / 1e9},
          {"share_of_bandwidth", rung.share_of_bandwidth},
          {"gain_over_previous", rung.gain_over_previous},
          {"gain_over_baseline", rung.gain_over_baseline},
          {"simulated", simulated},
          {"tests", std::move(tests)}};
}

}  // namespace

void summarize(std::vector<RungResult>& rungs, double bytes_per_second_of_memory) {
  const RungResult* baseline = nullptr;
  const RungResult* previous = nullptr;
  for (RungResult& rung : rungs) {
    if (!rung.skipped.empty()) continue;
    const auto mean = [&](auto figure) { return mean_of(rung.tests, figure); };
    rung.tokens_per_second = mean([](const TestRun& run) { return run.tokens_per_second(); });
    rung.steps_per_second = mean([](const TestRun& run) { return run.steps_per_second(); });
    rung.tokens_per_step = mean([](const TestRun& run) { return run.tokens_per_step(); });
    rung.bytes_per_step = mean([](const TestRun& run) { return run.bytes_per_step; });
    rung.bytes_per_second =
        mean([](const TestRun& run) { return run.bytes_per_step * run.steps_per_second(); });
    rung.share_of_bandwidth = rung.bytes_per_second / bytes_per_second_of_memory;
    DraftCounts drafts;
    for (const TestResult& test : rung.tests) drafts += test.reported().drafts;
    rung.acceptance = acceptance_of(drafts);
    if (!baseline) baseline = previous = &rung;
    rung.gain_over_previous = rung.tokens_per_second / previous->tokens_per_second;
    rung.gain_over_baseline = rung.tokens_per_second / baseline->tokens_per_second;
    previous = &rung;
  }
}

JsonObject ladder_json(const std::vector<RungResult>& rungs, bool simulated) {
  JsonArray steps, skipped;
  for (const RungResult& rung : rungs) {
    if (rung.skipped.empty()) {
      steps.push_back(rung_json(rung, simulated));
    } else {
      skipped.push_back(JsonObject{{"name", rung.name}, {"reason", rung.skipped}});
    }
  }
  return {{"steps", std::move(steps)}, {"skipped", std::move(skipped)}, {"simulated", simulated}};
}

}  // namespace slip
