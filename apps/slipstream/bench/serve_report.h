// What a sweep found: a row per number of users, as a table, as JSON and as a picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "slipstream/bench/serve_load.h"

namespace slip {

// Of some durations, in seconds.
struct Spread {
  double p50 = 0, p90 = 0, p99 = 0, most = 0;
};
Spread spread_of(const std::vector<double>& values);

struct ServeRow {
  int64_t users = 0, requests = 0, failures = 0;
  std::string failure;  // one of them
  Spread first_token, gap;
  // How much longer than usual somebody waits for a token now and then: p99 over the median.
  double unevenness() const { return gap.p50 > 0 ? gap.p99 / gap.p50 : 0; }
  double per_user = 0;  // tokens per second of one answer, the median
  double total = 0;     // of all together
  int64_t prompt_tokens = 0, tokens = 0;
  std::optional<double> acceptance;  // of drafted tokens, where the server says so
};
ServeRow row_of(const LoadResult& load);

// Second turns against first ones.
struct PrefixRow {
  int64_t conversations = 0, failures = 0;
  double first_turn = 0, second_turn = 0;        // seconds to the first token, medians
  int64_t prompt_tokens = 0, cached_tokens = 0;  // of second turns
  double share() const { return first_turn > 0 ? second_turn / first_turn : 0; }
};
PrefixRow row_of(const std::vector<Turns>& conversations);

struct ServeReport {
  // Tokens of answers in conversations: short, because templates often render an answer differently
  // from how it was made, and then it has to be computed again whatever is remembered.
  static constexpr int64_t kConversationAnswer = 64;

  std::string url, model;
  int64_t prompt_tokens = 0, max_tokens = 0, conversation_tokens = 0;
  ServeRow plain;  // one user without drafts: what the others are compared with
  std::vector<ServeRow> rows;
  std::optional<PrefixRow> prefix;

  double gain(const ServeRow& row) const;  // tokens per second over those of `plain`
  std::string table() const;
  JsonObject json() const;
  std::string svg() const;
};

}  // namespace slip
