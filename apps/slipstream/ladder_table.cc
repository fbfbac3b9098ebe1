#include "ladder_table.h"

#include <algorithm>
#include <cstdio>

#include "numbers.h"
#include "run_stats.h"
#include "terminal_text.h"

namespace slip {
namespace {

using Cells = std::vector<std::string>;

// In percent, place by place.
std::string describe_acceptance(const std::vector<double>& shares) {
  std::string text;
  for (const double share : shares) text += (text.empty() ? "" : " ") + fixed(100 * share, 0);
  return text;
}

Cells cells_of(const RungResult& rung, bool simulated) {
  return {rung.name + (simulated ? " (simulated)" : ""), describe_rate(rung.tokens_per_second),
          describe_rate(rung.steps_per_second),          fixed(rung.tokens_per_step, 2),
          describe_acceptance(rung.acceptance),          fixed(rung.bytes_per_step / 1e6, 1),
          fixed(rung.bytes_per_second / 1e9, 1),         fixed(100 * rung.share_of_bandwidth, 0),
          describe_gain(rung.gain_over_previous),        describe_gain(rung.gain_over_baseline)};
}

// Names to the left, figures to the right.
std::string padded(const std::string& text, int width, bool is_name) {
  const std::string space(size_t(std::max(0, width - display_width(text))), ' ');
  return is_name ? text + space : space + text;
}

}  // namespace

std::string describe_gain(double gain) { return fixed(gain, 2) + "x"; }

std::string ladder_table(const std::vector<RungResult>& rungs, TableStyle style, bool simulated) {
  const Cells head = {"step",    "tok/s", "steps/s",     "tok/step", "% right per place",
                      "MB/step", "GB/s",  "% bandwidth", "gain",     "in all"};
  std::vector<Cells> lines = {head};
  for (const RungResult& rung : rungs)
    lines.push_back(rung.skipped.empty() ? cells_of(rung, simulated)
                                         : Cells{rung.name, "skipped: " + rung.skipped});
  const auto is_note = [&](const Cells& cells) { return cells.size() < head.size(); };
  std::vector<int> widths(head.size());
  for (const Cells& cells : lines)
    for (size_t i = 0; i < cells.size(); ++i)
      if (i == 0 || !is_note(cells)) widths[i] = std::max(widths[i], display_width(cells[i]));

  const bool markdown = style == TableStyle::markdown;
  std::string text;
  for (const Cells& cells : lines) {
    for (size_t i = 0; i < head.size(); ++i) {
      if (i >= cells.size() && !markdown) break;
      const std::string cell = i < cells.size() ? cells[i] : "";
      const bool to_the_left = i == 0 || is_note(cells);
      text +=
          (markdown ? (i ? " | " : "| ") : (i ? "  " : "")) + padded(cell, widths[i], to_the_left);
    }
    text += markdown ? " |\n" : "\n";
    if (markdown && &cells == &lines.front()) {
      text += "|---";
      for (size_t i = 1; i < head.size(); ++i) text += "|--:";
      text += "|\n";
    }
  }
  return text;
}

}  // namespace slip
