// What the ladder measured: per test and run, and per rung as means over the tests.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "engine/decoder.h"

namespace slip {

// Of one run of one test: its repetition of median speed.
struct TestRun {
  int64_t tokens = 0;  // that took steps
  double seconds = 0;
  DraftCounts drafts;
  double bytes_per_step = 0;
  int64_t repetitions = 0;

  double tokens_per_second() const { return double(tokens) / seconds; }
  double steps_per_second() const { return double(drafts.steps) / seconds; }
  double tokens_per_step() const { return double(tokens) / double(drafts.steps); }
};

struct TestResult {
  std::string name;
  int64_t prompt_tokens = 0;
  bool ignores_end = false;     // went on to the limit, since the answer was too short to time
  std::vector<TestRun> runs{};  // the last one is reported

  const TestRun& reported() const { return runs.back(); }
};

struct RungResult {
  std::string name;
  std::string skipped{};  // why there is nothing else here
  std::vector<TestResult> tests{};

  // By summarize(): means over the tests, as the recipe publishes them.
  double tokens_per_second = 0;
  double steps_per_second = 0;
  double tokens_per_step = 0;
  double bytes_per_step = 0;
  double bytes_per_second = 0;
  double share_of_bandwidth = 0;
  std::vector<double> acceptance{};  // of all tests' judged drafts, per place
  double gain_over_previous = 1;     // tokens per second as a multiple; 1 for the baseline
  double gain_over_baseline = 1;
};

// Fills in the means and the gains. Skipped rungs are not stepped on: the gain of the next one is
// over the last that was measured.
void summarize(std::vector<RungResult>& rungs, double bytes_per_second_of_memory);

// {"steps": [...], "skipped": [...]} with the names that outside checks expect.
JsonObject ladder_json(const std::vector<RungResult>& rungs, bool simulated);

}  // namespace slip
