#include "slipstream/bench/ladder_table.h"

#include "slipstream/common/numbers.h"

namespace slip {
namespace {

// In percent, place by place.
std::string describe_acceptance(const std::vector<double>& shares) {
  std::vector<std::string> percents;
  percents.reserve(shares.size());
  for (const double share : shares) percents.push_back(fixed(100 * share, 0));
  return join(percents, " ");
}

TableLine line_of(const RungResult& rung, bool simulated) {
  return {rung.name + (simulated ? " (simulated)" : ""), describe_rate(rung.tokens_per_second),
          describe_rate(rung.steps_per_second),          fixed(rung.tokens_per_step, 2),
          describe_acceptance(rung.acceptance),          fixed(rung.bytes_per_step / 1e6, 1),
          fixed(rung.bytes_per_second / 1e9, 1),         fixed(100 * rung.share_of_bandwidth, 0),
          describe_gain(rung.gain_over_previous),        describe_gain(rung.gain_over_baseline)};
}

}  // namespace

std::string describe_gain(double gain) { return fixed(gain, 2) + "x"; }

std::string ladder_table(const std::vector<RungResult>& rungs, TableStyle style, bool simulated) {
  TextTable table({"step", "tok/s", "steps/s", "tok/step", "% right per place", "MB/step", "GB/s",
                   "% bandwidth", "gain", "in all"},
                  1);
  for (const RungResult& rung : rungs)
    table.add(rung.skipped.empty() ? line_of(rung, simulated)
                                   : TableLine{rung.name, "skipped: " + rung.skipped});
  return table.text(style);
}

}  // namespace slip
