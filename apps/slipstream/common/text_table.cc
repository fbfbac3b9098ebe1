#include "slipstream/common/text_table.h"

#include <algorithm>
#include <utility>

#include "slipstream/common/terminal_text.h"

namespace slip {
namespace {

std::string padded(const std::string& text, int width, bool to_the_left) {
  const std::string space(size_t(std::max(0, width - display_width(text))), ' ');
  return to_the_left ? text + space : space + text;
}

}  // namespace

TextTable::TextTable(TableLine head, size_t names) : widths_(head.size()), names_(names) {
  lines_.push_back(std::move(head));
  for (size_t i = 0; i < widths_.size(); ++i) widths_[i] = display_width(lines_.front()[i]);
}

void TextTable::add(TableLine line) {
  const size_t columns = has_remark(line) ? line.size() - 1 : line.size();
  for (size_t i = 0; i < columns; ++i) widths_[i] = std::max(widths_[i], display_width(line[i]));
  lines_.push_back(std::move(line));
}

std::string TextTable::text(TableStyle style) const {
  const bool markdown = style == TableStyle::markdown, csv = style == TableStyle::csv;
  const char* first = markdown ? "| " : "";
  const char* next = markdown ? " | " : csv ? "," : "  ";
  const char* end = markdown ? " |\n" : "\n";
  std::string text;
  for (const TableLine& line : lines_) {
    // A document's line has all its cells.
    const size_t cells = style == TableStyle::plain ? line.size() : widths_.size();
    for (size_t i = 0; i < cells; ++i) {
      const std::string cell = i < line.size() ? line[i] : "";
      text += (i == 0 ? first : next) +
              (csv ? cell : padded(cell, widths_[i], i < names_ || has_remark(line)));
    }
    text += end;
    if (markdown && &line == &lines_.front()) {
      for (size_t i = 0; i < widths_.size(); ++i) text += i < names_ ? "|---" : "|--:";
      text += "|\n";
    }
  }
  return text;
}

}  // namespace slip
