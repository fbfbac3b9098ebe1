// How fast an answer was, for people and for programs.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "engine/generate.h"

namespace slip {

// What decoding moved through memory.
struct DecodeTraffic {
  double bytes_per_token = 0;
  double bytes_per_second = 0;
  std::optional<double> share_of_bandwidth;  // of what was measured
};
DecodeTraffic decode_traffic(Engine& engine, const GenerateResult& result);

// "87 tokens, 1,234 tok/s · prompt 19 tokens, 5,100 tok/s · 14.9 MB/token, 18.4 GB/s"
std::string describe_stats(const GenerateResult& result, const DecodeTraffic& traffic,
                           std::optional<double> load_seconds);

// Share of the judged drafts that were right, per place in the draft.
JsonArray acceptance_list(const DraftCounts& drafts);

// The timings of `run --json`.
JsonObject stats_json(const GenerateResult& result, const DecodeTraffic& traffic,
                      double load_seconds);

}  // namespace slip
