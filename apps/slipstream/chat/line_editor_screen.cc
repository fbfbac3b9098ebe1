#include "slipstream/chat/line_editor_screen.h"

#include <algorithm>

#include "slipstream/common/terminal_text.h"

namespace slip {

LineLayout lay_out(const LineToDraw& line, int columns) {
  LineLayout layout;
  layout.rows.emplace_back(line.prompt);
  int column = display_width(line.prompt);
  const auto place_cursor = [&] {
    layout.cursor_row = int(layout.rows.size()) - 1;
    layout.cursor_column = column;
  };
  const auto new_row = [&](std::string_view start) {
    layout.rows.emplace_back(start);
    column = display_width(start);
  };
  for (size_t at = 0; at < line.text.size();) {
    const size_t end = next_character(line.text, at);
    const std::string_view character = line.text.substr(at, end - at);
    if (character == "\n") {
      if (at == line.cursor) place_cursor();
      new_row(line.continuation);
    } else {
      const int width = character_width(character);
      if (column + width > columns) new_row("");
      if (at == line.cursor) place_cursor();
      layout.rows.back() += character;
      column += width;
    }
    at = end;
  }
  // Beyond the last column there is no place for a cursor.
  if (column >= columns) new_row("");
  if (line.cursor >= line.text.size()) place_cursor();
  return layout;
}

std::string LineScreen::draw(const LineToDraw& line, const TerminalSize& size) {
  const LineLayout layout = lay_out(line, std::max(size.columns, 4));
  // A text taller than the screen is seen through a window that holds the cursor: the terminal
  // cannot go back to rows that have scrolled away.
  const int count = int(layout.rows.size());
  const int shown = std::min(count, std::max(size.rows - 1, 1));
  const int first = std::clamp(layout.cursor_row - shown + 1, 0, count - shown);

  std::string out;
  if (cursor_row_ > 0) out += cat("\033[", cursor_row_, "A");
  out += "\r\033[J";
  for (int row = first; row < first + shown; ++row) {
    if (row > first) out += "\r\n";
    out += layout.rows[size_t(row)];
  }
  const int below = first + shown - 1 - layout.cursor_row;
  if (below > 0) out += cat("\033[", below, "A");
  out += '\r';
  if (layout.cursor_column > 0) out += cat("\033[", layout.cursor_column, "C");
  cursor_row_ = layout.cursor_row - first;
  return out;
}

std::string LineScreen::leave(const LineToDraw& line, const TerminalSize& size) {
  LineToDraw at_end = line;
  at_end.cursor = line.text.size();
  std::string out = draw(at_end, size) + "\r\n";
  cursor_row_ = 0;
  return out;
}

}  // namespace slip
