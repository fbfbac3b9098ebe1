#include "slipstream/bench/serve_report.h"

#include <algorithm>

#include "slipstream/common/numbers.h"
#include "slipstream/common/text_table.h"

namespace slip {
namespace {

std::string milliseconds(double seconds) { return fixed(seconds * 1e3, 1); }

JsonObject json_of(const Spread& spread) {
  return {{"p50", spread.p50}, {"p90", spread.p90}, {"p99", spread.p99}, {"max", spread.most}};
}

JsonObject json_of(const ServeRow& row) {
  JsonObject object{{"users", row.users},
                    {"requests", row.requests},
                    {"failures", row.failures},
                    {"time_to_first_token_seconds", json_of(row.first_token)},
                    {"inter_token_seconds", json_of(row.gap)},
                    {"inter_token_p99_over_p50", row.unevenness()},
                    {"tokens_per_second_per_user", row.per_user},
                    {"tokens_per_second", row.total},
                    {"prompt_tokens", row.prompt_tokens},
                    {"tokens", row.tokens}};
  if (row.acceptance) object["acceptance"] = *row.acceptance;
  if (!row.failure.empty()) object["failure"] = row.failure;
  return object;
}

}  // namespace

Spread spread_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  return {quantile(values, 0.5), quantile(values, 0.9), quantile(values, 0.99),
          std::ranges::max(values)};
}

ServeRow row_of(const LoadResult& load) {
  ServeRow row;
  row.users = load.users;
  std::vector<double> first, gaps, rates;
  int64_t drafted = 0, accepted = 0;
  for (const Sample& sample : load.samples) {
    ++row.requests;
    if (!sample.failure.empty()) {
      ++row.failures;
      row.failure = sample.failure;
      continue;
    }
    first.push_back(sample.first_token_seconds);
    gaps.insert(gaps.end(), sample.gaps.begin(), sample.gaps.end());
    if (sample.decode_seconds > 0)
      rates.push_back(double(sample.tokens - 1) / sample.decode_seconds);
    row.prompt_tokens += sample.prompt_tokens;
    row.tokens += sample.tokens;
    drafted += sample.drafted;
    accepted += sample.accepted;
  }
  row.first_token = spread_of(first);
  row.gap = spread_of(gaps);
  row.per_user = median(rates);
  row.total = load.seconds > 0 ? double(row.tokens) / load.seconds : 0;
  if (drafted > 0) row.acceptance = double(accepted) / double(drafted);
  return row;
}

PrefixRow row_of(const std::vector<Turns>& conversations) {
  PrefixRow row;
  std::vector<double> first, second;
  for (const Turns& turns : conversations) {
    ++row.conversations;
    if (!turns.first.failure.empty() || !turns.second.failure.empty()) {
      ++row.failures;
      continue;
    }
    first.push_back(turns.first.first_token_seconds);
    second.push_back(turns.second.first_token_seconds);
    row.prompt_tokens += turns.second.prompt_tokens;
    row.cached_tokens += turns.second.cached_tokens;
  }
  row.first_turn = median(first);
  row.second_turn = median(second);
  return row;
}

double ServeReport::gain(const ServeRow& row) const {
  return plain.total > 0 ? row.total / plain.total : 0;
}

std::string ServeReport::table() const {
  std::string text = cat(model, " at ", url, ", prompts of about ", prompt_tokens,
                         " tokens, answers of ", max_tokens, "\n\n");
  TextTable table({"users", "tok/s", "gain", "per user", "TTFT p50", "p99 ms", "ITL p50", "p99 ms",
                   "p99/p50", "max ms", "accepted", "failed"},
                  1);
  const auto add_row = [&](const std::string& name, const ServeRow& row) {
    table.add({name, fixed(row.total, 1), fixed(gain(row), 2), fixed(row.per_user, 1),
               milliseconds(row.first_token.p50), milliseconds(row.first_token.p99),
               milliseconds(row.gap.p50), milliseconds(row.gap.p99), fixed(row.unevenness(), 1),
               milliseconds(row.gap.most),
               row.acceptance ? fixed(100 * *row.acceptance, 0) + " %" : "-", cat(row.failures)});
  };
  add_row("1 plain", plain);
  for (const ServeRow& row : rows) add_row(cat(row.users), row);
  text += table.text(TableStyle::plain);
  text += "\nplain: asked for without drafts; gain: tok/s over those of one plain user\n";
  if (plain.acceptance) text += "(the server made drafts all the same)\n";
  if (plain.failures > 0) text += cat("\none plain user: ", plain.failure, "\n");
  for (const ServeRow& row : rows)
    if (row.failures > 0) text += cat("\nat ", row.users, " users: ", row.failure, "\n");
  if (prefix && prefix->conversations > prefix->failures)
    text += cat("\nsecond turns behind ", conversation_tokens,
                " tokens and a short answer: first token after ", milliseconds(prefix->second_turn),
                " ms, ", fixed(100 * prefix->share(), 1), " % of ",
                milliseconds(prefix->first_turn), " ms for the first turn; ", prefix->cached_tokens,
                " of ", prefix->prompt_tokens, " prompt tokens remembered\n");
  return text;
}

JsonObject ServeReport::json() const {
  JsonArray list;
  for (const ServeRow& row : rows) {
    JsonObject object = json_of(row);
    object["gain"] = gain(row);
    list.push_back(std::move(object));
  }
  JsonObject report{{"url", url},
                    {"model", model},
                    {"prompt_tokens", prompt_tokens},
                    {"max_tokens", max_tokens},
                    {"conversation_tokens", conversation_tokens},
                    {"plain", json_of(plain)},
                    {"rows", std::move(list)}};
  if (prefix)
    report["prefix"] = JsonObject{{"conversations", prefix->conversations},
                                  {"failures", prefix->failures},
                                  {"first_turn_seconds", prefix->first_turn},
                                  {"second_turn_seconds", prefix->second_turn},
                                  {"share", prefix->share()},
                                  {"prompt_tokens", prefix->prompt_tokens},
                                  {"cached_tokens", prefix->cached_tokens}};
  return report;
}

}  // namespace slip
