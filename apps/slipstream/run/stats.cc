#include "slipstream/run/stats.h"

#include <cmath>
#include <cstdio>

#include "models/drafter.h"
#include "slipstream/common/numbers.h"

namespace slip {
namespace {

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[128];
  std::snprintf(text, sizeof(text), pattern, values...);
  return text;
}

}  // namespace

DecodeTraffic decode_traffic(Engine& engine, const GenerateResult& result) {
  DecodeTraffic traffic;
  const DraftCounts& drafts = result.drafts;
  if (drafts.steps == 0) return traffic;
  // The context grows while the answer is written; its middle stands for all of it, and a step of
  // the mean number of rows for every step.
  const int64_t context = result.prompt_tokens + int64_t(result.ids.size()) / 2;
  const KvRecipe& kv = engine.memory().cache_format.kv;
  const auto bytes = [](const StepCost& cost) {
    return double(cost.weight_bytes + cost.cache_bytes);
  };
  const double more_rows = double(drafts.drafted) / double(drafts.steps);
  const auto rows = int64_t(more_rows) + 1;
  const double below = bytes(engine.model().step_cost(rows, context, kv));
  const double above = bytes(engine.model().step_cost(rows + 1, context, kv));
  double total = double(drafts.steps) * std::lerp(below, above, more_rows - double(rows - 1));
  if (drafts.made > 0)
    total += double(drafts.made) * bytes(engine.model().drafter()->cost(context, kv));
  traffic.bytes_per_token = total / double(result.ids.size());
  traffic.bytes_per_second = traffic.bytes_per_token * result.decode_rate();
  return traffic;
}

std::string describe_stats(const GenerateResult& result, const DecodeTraffic& traffic,
                           std::optional<double> load_seconds) {
  const auto count = int64_t(result.ids.size());
  std::string text = cat(with_commas(count), count == 1 ? " token" : " tokens");
  if (count > 0) text += cat(", ", describe_rate(result.decode_rate()), " tok/s");
  if (result.drafts.drafted > 0)
    text += format(" (%.2f per step, %.0f %% of %lld drafts right)",
                   double(count) / double(result.drafts.steps),
                   100.0 * double(result.drafts.accepted) / double(result.drafts.drafted),
                   static_cast<long long>(result.drafts.drafted));
  text += cat(" · prompt ", with_commas(result.prompt_tokens), " tokens");
  if (result.reused_tokens > 0) text += cat(" (", with_commas(result.reused_tokens), " reused)");
  text += cat(", ", describe_rate(result.prompt_rate()), " tok/s");
  if (load_seconds) text += format(" · loaded in %.2f s", *load_seconds);
  if (count > 0) {
    const double megabytes = traffic.bytes_per_token / 1e6;
    text += cat(" · ", describe_rate(megabytes), " MB/token, ",
                describe_rate(traffic.bytes_per_second / 1e9), " GB/s");
    if (traffic.share_of_bandwidth)
      text +=
          format(", %.0f %% of the measured memory bandwidth%s", 100 * *traffic.share_of_bandwidth,
                 *traffic.share_of_bandwidth > 1 ? " (out of the cache)" : "");
  }
  return text;
}

JsonArray acceptance_list(const DraftCounts& drafts) {
  JsonArray list;
  for (size_t i = 0; i < drafts.judged_at.size() && drafts.judged_at[i] > 0; ++i)
    list.emplace_back(double(drafts.accepted_at[i]) / double(drafts.judged_at[i]));
  return list;
}

JsonObject stats_json(const GenerateResult& result, const DecodeTraffic& traffic,
                      double load_seconds) {
  return {{"load_seconds", load_seconds},
          {"prompt_tokens", result.prompt_tokens},
          {"prompt_seconds", result.prompt_seconds},
          {"prompt_tokens_per_second", result.prompt_rate()},
          {"generated", result.ids.size()},
          {"decode_seconds", result.decode_seconds},
          {"tokens_per_second", result.decode_rate()},
          {"bytes_per_token", traffic.bytes_per_token},
          {"gb_per_s", traffic.bytes_per_second / 1e9}};
}

}  // namespace slip
