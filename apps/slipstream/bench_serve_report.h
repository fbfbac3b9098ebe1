// What a sweep found: a row per number of users, as a table, as JSON and as a picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "bench_serve_load.h"

namespace slip {

// Of some durations, in seconds.
struct Spread {
  double p50 = 0, p90 = 0, p99 = 0, most = 0;
};
Spread spread_of(std::vector<double> values);

struct ServeRow {
  int64_t users = 0, requests = 0, failures = 0;
  std::string failure;  // one of them
  Spread first_token, gap;
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
};
PrefixRow row_of(const std::vector<Turns>& conversations);

struct ServeReport {
  std::string url, model;
  int64_t prompt_tokens = 0, max_tokens = 0;
  std::vector<ServeRow> rows;
  std::optional<PrefixRow> prefix;

  std::string table() const;
  JsonObject json() const;
  std::string svg() const;
};

}  // namespace slip
