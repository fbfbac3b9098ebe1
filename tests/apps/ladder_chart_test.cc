#include "slipstream/bench/ladder_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "slipstream/common/terminal_text.h"

namespace slip {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

const std::vector<Bar> kBars = {{"baseline", 50, "50 tok/s"}, {"+ one", 100, "100 tok/s"}};

TEST(BarChart, BarsAreAsLongAsTheirValues) {
  const std::vector<std::string> lines = lines_of(bar_chart(kBars, 60));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(count(lines[1], "█"), 2 * count(lines[0], "█") + count(lines[0], "▌"));
  EXPECT_THAT(lines[0], testing::StartsWith("baseline  █"));
  EXPECT_THAT(lines[1], testing::StartsWith("+ one     █"));
  EXPECT_THAT(lines[1], testing::EndsWith(" 100 tok/s"));
}

TEST(BarChart, FillsTheTerminalAndNoMore) {
  for (const int columns : {40, 61, 80, 200}) {
    const std::vector<std::string> lines = lines_of(bar_chart(kBars, columns));
    EXPECT_EQ(display_width(lines[1]), columns - 1);  // a full line would wrap in some terminals
  }
  // Too narrow for anything: still a chart.
  EXPECT_EQ(count(lines_of(bar_chart(kBars, 5))[1], "█"), 8u);
}

TEST(BarChart, PartsOfAColumnAreDrawn) {
  const std::string chart = bar_chart({{"a", 100, ""}, {"b", 0.1, ""}}, 30);
  EXPECT_THAT(chart, HasSubstr("b  ▏"));
}

// Whether every tag is closed in order, every attribute quoted and no bare & or < left.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = 0; at < xml.size();) {
    if (xml[at] == '&') {
      const size_t end = xml.find(';', at);
      ASSERT_NE(end, std::string::npos);
      EXPECT_THAT((std::vector<std::string>{"amp", "lt", "gt", "quot"}),
                  testing::Contains(xml.substr(at + 1, end - at - 1)));
      at = end + 1;
      continue;
    }
    ASSERT_NE(xml[at], '>') << xml.substr(at, 40);
    if (xml[at] != '<') {
      ++at;
      continue;
    }
    const size_t end = xml.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    EXPECT_EQ(tag.find('<'), std::string::npos) << tag;
    EXPECT_EQ(count(tag, "\""), 2 * count(tag, "=\"")) << tag;
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty()) << tag;
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end + 1;
  }
  EXPECT_TRUE(open.empty());
}

TEST(SvgChart, IsWellFormedWhateverTheNames) {
  const std::string svg =
      svg_chart({{"a & b", 2, "\"2\" > 1"}, {"<script>", 3, "3"}}, {"Q&A", "x < y"});
  expect_well_formed(svg);
  EXPECT_THAT(svg, HasSubstr("a &amp; b"));
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
}

TEST(SvgChart, HasABarPerValueAndBothColourSchemes) {
  const std::string svg = svg_chart(kBars, {"Title", "Subtitle"});
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "<rect "), 2u);
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
  for (const char* text : {"Title", "Subtitle", "baseline", "+ one", "100 tok/s"})
    EXPECT_THAT(svg, HasSubstr(text));
}

}  // namespace
}  // namespace slip
