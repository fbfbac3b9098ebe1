// The ladder as a picture: bars in a terminal, or an SVG file.
#pragma once

#include <string>
#include <vector>

namespace slip {

struct Bar {
  std::string name;
  double value = 0;   // positive
  std::string label;  // the value in words, behind the bar
};

// One line per bar, as long as `columns` allow.
std::string bar_chart(const std::vector<Bar>& bars, int columns);

// Readable on light and on dark pages: it has no background, and its colours follow the reader's.
struct ChartTexts {
  std::string title;
  std::string subtitle;
};
std::string svg_chart(const std::vector<Bar>& bars, const ChartTexts& texts);

}  // namespace slip
