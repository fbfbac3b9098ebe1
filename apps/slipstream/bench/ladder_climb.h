// Runs the rungs of the ladder: loads them, decodes the tests in each, and checks that drafts
// change no text.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "slipstream/bench/ladder_result.h"
#include "slipstream/bench/ladder_rungs.h"
#include "slipstream/bench/ladder_tests.h"

namespace slip {

struct LadderSetup {
  const ModelSource& source;
  const Backend& backend;
  MemoryRequest memory{};  // the rungs say which recipe the cache has
  LadderTests tests{};
  double seconds = 0.5;                // of decoding per test, rung and run
  std::optional<double> acceptance{};  // simulated; without it the text is the model's

  // What is being done, and what is done; for a person who waits.
  std::function<void(const std::string&)> doing = [](const std::string&) {};
  std::function<void(const std::string&)> done = [](const std::string&) {};
};

// Two runs, as the recipe has them. One result for each rung; not yet summarized. Small models are
// all loaded at once and take turns, so that a machine that is slow for a while is slow for all.
Result<std::vector<RungResult>> climb_ladder(const LadderSetup& setup,
                                             const std::vector<Rung>& ladder);

}  // namespace slip
