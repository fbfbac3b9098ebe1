// Users of a server: each asks, reads the answer as it comes, and asks again.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "slipstream/bench/serve_client.h"

namespace slip {

struct LoadSettings {
  const MeasuredServer* server = nullptr;
  std::string model;
  int64_t prompt_words = 256;
  int64_t max_tokens = 128;
  double temperature = 0;
  bool drafts = true;       // false asks the server to do without
  bool ignore_eos = false;  // for servers that do not know min_tokens
};

// One answer as its user saw it.
struct Sample {
  std::string failure;             // empty: it came
  double first_token_seconds = 0;  // from the question on
  double decode_seconds = 0;       // from the first token to the last
  std::vector<double> gaps;        // seconds between one piece and the next
  int64_t prompt_tokens = 0, cached_tokens = 0, tokens = 0;
  int64_t drafted = 0, accepted = 0;
  std::string thoughts, answer;
};

// Text that no server has seen: different for every `seed`.
std::string fresh_text(uint64_t seed, int64_t words);

// How a server counts: what a prompt of some tokens has to be.
struct PromptLengths {
  double tokens_per_word = 1;
  double overhead = 0;  // tokens of the template

  int64_t words(int64_t tokens) const;
};
// Asks the server twice, which also shows whether it answers, and which way it can be kept from
// ending an answer early: settings.ignore_eos is set if it needs that.
Result<PromptLengths> learn_lengths(LoadSettings& settings, uint64_t seed);

Sample ask(const LoadSettings& settings, const JsonArray& messages);

struct LoadResult {
  int64_t users = 0;
  double seconds = 0;
  std::vector<Sample> samples;
};

// `users` at once, each asking `rounds` times. `seed` makes the prompts of this run its own.
LoadResult run_load(const LoadSettings& settings, int64_t users, int64_t rounds, uint64_t seed);

// A conversation's first turn and its second, which begins with the same text.
struct Turns {
  Sample first, second;
};
Turns ask_twice(const LoadSettings& settings, uint64_t seed);

// The name of the first model that the server lists.
Result<std::string> first_model(const MeasuredServer& server);

}  // namespace slip
