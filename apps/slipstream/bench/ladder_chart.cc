#include "slipstream/bench/ladder_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "slipstream/bench/svg.h"
#include "slipstream/common/terminal_text.h"

namespace slip {
namespace {

double largest(const std::vector<Bar>& bars) {
  double most = 0;
  for (const Bar& bar : bars) most = std::max(most, bar.value);
  return most;
}

// Blocks of eighths of a column.
std::string blocks(double columns) {
  constexpr std::array<const char*, 8> kPart = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = std::max<int64_t>(1, std::llround(columns * 8));
  std::string text;
  for (int64_t i = 0; i < eighths / 8; ++i) text += "█";
  return text + kPart[size_t(eighths % 8)];
}

// In pixels.
constexpr double kWidth = 800, kMargin = 16, kHead = 76, kPitch = 38, kBarHeight = 24;
constexpr double kNameWidth = 186, kLabelWidth = 210;
constexpr double kBarsBegin = kMargin + kNameWidth;
constexpr double kLongestBar = kWidth - kBarsBegin - kLabelWidth;

constexpr const char* kStyle =
    "<style>\n"
    "  text { font: 14px system-ui, sans-serif; fill: #1f2328; }\n"
    "  .title { font-size: 18px; font-weight: 600; }\n"
    "  .quiet { fill: #59636e; }\n"
    "  .bar { fill: #7aa7d9; }\n"
    "  .last { fill: #1f6feb; }\n"
    "  .mark { stroke: #ffffff; stroke-opacity: 0.7; stroke-dasharray: 3 3; }\n"
    "  @media (prefers-color-scheme: dark) {\n"
    "    text { fill: #e6edf3; }\n"
    "    .quiet { fill: #9198a1; }\n"
    "    .bar { fill: #33598a; }\n"
    "    .last { fill: #58a6ff; }\n"
    "  }\n"
    "</style>\n";

}  // namespace

std::string bar_chart(const std::vector<Bar>& bars, int columns) {
  int name_width = 0, label_width = 0;
  for (const Bar& bar : bars) {
    name_width = std::max(name_width, display_width(bar.name));
    label_width = std::max(label_width, display_width(bar.label));
  }
  constexpr int kShortest = 8;
  const int room = std::max(kShortest, columns - name_width - label_width - 4);
  const double scale = double(room) / largest(bars);
  std::string text;
  for (const Bar& bar : bars)
    text += bar.name + std::string(size_t(name_width - display_width(bar.name)), ' ') + "  " +
            blocks(bar.value * scale) + " " + bar.label + "\n";
  return text;
}

std::string svg_chart(const std::vector<Bar>& bars, const ChartTexts& texts) {
  const double scale = kLongestBar / largest(bars);
  const double height = kHead + kPitch * double(bars.size()) + kMargin;
  std::string svg = cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", kWidth, " ",
                        height, "\" width=\"", kWidth, "\" height=\"", height, "\" role=\"img\">\n",
                        "<title>", svg_escaped(texts.title), "</title>\n", kStyle);
  svg += svg_text(kMargin, 30, " class=\"title\"", texts.title);
  svg += svg_text(kMargin, 52, " class=\"quiet\"", texts.subtitle);
  double y = kHead;
  for (const Bar& bar : bars) {
    const double length = bar.value * scale;
    const double line = y + kBarHeight / 2 + 5;  // the foot of letters of 14 px beside the bar
    svg += svg_text(kBarsBegin - 12, line, " text-anchor=\"end\"", bar.name);
    svg += cat("<rect class=\"", &bar == &bars.back() ? "bar last" : "bar", "\" x=\"", kBarsBegin,
               "\" y=\"", y, "\" width=\"", length, "\" height=\"", kBarHeight, "\" rx=\"3\"/>\n");
    // Where the baseline ends, on bars that go beyond it.
    const double mark = kBarsBegin + bars.front().value * scale;
    if (bar.value > bars.front().value)
      svg += cat("<line class=\"mark\" x1=\"", mark, "\" y1=\"", y, "\" x2=\"", mark, "\" y2=\"",
                 y + kBarHeight, "\"/>\n");
    svg += svg_text(kBarsBegin + length + 8, line, "", bar.label);
    y += kPitch;
  }
  return svg + "</svg>\n";
}

}  // namespace slip
