// The sweep as a picture: tokens per second above, pauses between tokens below, over the users.
#include <algorithm>
#include <cmath>

#include "slipstream/bench/serve_report.h"
#include "slipstream/bench/svg.h"

namespace slip {
namespace {

// In pixels.
constexpr double kChartWidth = 800, kLeft = 80, kRight = 150, kPanel = 190, kChartHead = 76,
                 kBetween = 60;
constexpr double kPlotWidth = kChartWidth - kLeft - kRight;

// No background, and colours that follow the reader's, as our other pictures.
constexpr const char* kChartStyle =
    "<style>\n"
    "  text { font: 14px system-ui, sans-serif; fill: #1f2328; }\n"
    "  .title { font-size: 18px; font-weight: 600; }\n"
    "  .quiet { fill: #59636e; }\n"
    "  .grid { stroke: #59636e; stroke-opacity: 0.25; }\n"
    "  .line { fill: none; stroke-width: 2.5; stroke: #1f6feb; }\n"
    "  .second { stroke: #7aa7d9; }\n"
    "  .dot { fill: #1f6feb; }\n"
    "  .dot.second { fill: #7aa7d9; stroke: none; }\n"
    "  @media (prefers-color-scheme: dark) {\n"
    "    text { fill: #e6edf3; }\n"
    "    .quiet { fill: #9198a1; }\n"
    "    .line { stroke: #58a6ff; }\n"
    "    .second { stroke: #33598a; }\n"
    "    .dot { fill: #58a6ff; }\n"
    "    .dot.second { fill: #33598a; }\n"
    "  }\n"
    "</style>\n";

// 1, 2 or 5 times a power of ten, so that at most five steps reach `most`.
double step_for(double most) {
  const double raw = std::max(most, 1e-9) / 5, power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw) return factor * power;
  return 10 * power;
}

struct Series {
  std::string name;
  std::vector<double> values;
};

class Panel {
 public:
  Panel(const std::vector<ServeRow>& rows, double top) : rows_(rows), top_(top) {}

  std::string draw(const std::string& unit, const std::vector<Series>& all) {
    for (const Series& series : all)
      for (const double value : series.values) most_ = std::max(most_, value);
    const double step = step_for(most_);
    most_ = std::max(step, std::ceil(most_ / step) * step);
    std::string svg = svg_text(kLeft, top_ - 12, " class=\"quiet\"", unit);
    const auto lines = std::lround(most_ / step);
    for (long line = 0; line <= lines; ++line) {
      const double value = double(line) * step;
      svg += cat("<line class=\"grid\" x1=\"", kLeft, "\" y1=\"", y(value), "\" x2=\"",
                 kLeft + kPlotWidth, "\" y2=\"", y(value), "\"/>\n");
      svg += svg_text(kLeft - 10, y(value) + 5, " class=\"quiet\" text-anchor=\"end\"", cat(value));
    }
    for (size_t i = 0; i < rows_.size(); ++i)
      svg += svg_text(x(i), top_ + kPanel + 22, " class=\"quiet\" text-anchor=\"middle\"",
                      cat(rows_[i].users));
    double label = -1e9;  // names of lines that end close together must not overlap
    for (size_t s = 0; s < all.size(); ++s) {
      constexpr double kLine = 17;
      const double end = y(all[s].values.back()) + 5;
      label = std::abs(end - label) >= kLine ? end : label + (end < label ? -kLine : kLine);
      svg += draw_series(all[s], s == 0 ? "" : " second", label);
    }
    return svg;
  }

 private:
  std::string draw_series(const Series& series, const std::string& kind, double label) const {
    std::string points, dots;
    for (size_t i = 0; i < series.values.size(); ++i) {
      points += cat(i ? " " : "", x(i), ",", y(series.values[i]));
      dots += cat("<circle class=\"dot", kind, "\" cx=\"", x(i), "\" cy=\"", y(series.values[i]),
                  "\" r=\"4\"/>\n");
    }
    return cat("<polyline class=\"line", kind, "\" points=\"", points, "\"/>\n", dots) +
           svg_text(kLeft + kPlotWidth + 12, label, "", series.name);
  }

  // Equal steps: users are usually doubled.
  double x(size_t row) const {
    return kLeft + kPlotWidth * (double(row) + 0.5) / double(rows_.size());
  }
  double y(double value) const { return top_ + kPanel * (1 - value / most_); }

  const std::vector<ServeRow>& rows_;
  double top_, most_ = 0;
};

}  // namespace

std::string ServeReport::svg() const {
  Series total{"all users", {}}, single{"each user", {}}, usual{"p50", {}}, worst{"p99", {}};
  for (const ServeRow& row : rows) {
    total.values.push_back(row.total);
    single.values.push_back(row.per_user);
    worst.values.push_back(row.gap.p99 * 1e3);
    usual.values.push_back(row.gap.p50 * 1e3);
  }
  const double first = kChartHead + 24, second = first + kPanel + kBetween;
  const double height = second + kPanel + 50;
  std::string svg =
      cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", kChartWidth, " ", height,
          "\" width=\"", kChartWidth, "\" height=\"", height, "\" role=\"img\">\n", "<title>",
          svg_escaped(model), "</title>\n", kChartStyle);
  svg += svg_text(16, 30, " class=\"title\"", cat(model, ": users at once"));
  svg += svg_text(16, 52, " class=\"quiet\"",
                  cat("prompts of about ", prompt_tokens, " tokens, answers of ", max_tokens));
  if (!rows.empty()) {
    svg += Panel(rows, first).draw("tokens per second", {total, single});
    svg += Panel(rows, second).draw("milliseconds between tokens", {worst, usual});
  }
  return svg +
         svg_text(kLeft + kPlotWidth / 2, height - 8, " class=\"quiet\" text-anchor=\"middle\"",
                  "users") +
         "</svg>\n";
}

}  // namespace slip
