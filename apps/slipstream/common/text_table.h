// Figures in columns of text, for people and for documents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace slip {

enum class TableStyle : uint8_t { plain, markdown, csv };

using TableLine = std::vector<std::string>;  // its cells

class TextTable {
 public:
  // The first `names` columns stand to the left, the figures behind them to the right.
  TextTable(TableLine head, size_t names);

  // A line with fewer cells than the head ends in a remark, which makes no column wider.
  void add(TableLine line);

  std::string text(TableStyle style) const;

 private:
  bool has_remark(const TableLine& line) const { return line.size() < lines_.front().size(); }

  std::vector<TableLine> lines_;  // the head is the first
  std::vector<int> widths_;
  size_t names_;
};

}  // namespace slip
