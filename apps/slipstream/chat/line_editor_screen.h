// Draws the text being edited over as many rows as it needs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "slipstream/common/terminal.h"

namespace slip {

// Rows of a screen, none wider than its columns, and where the cursor is.
struct LineLayout {
  std::vector<std::string> rows;
  int cursor_row = 0, cursor_column = 0;
};

struct LineToDraw {
  std::string_view prompt;        // before the first line
  std::string_view continuation;  // before every further line
  std::string_view text;
  size_t cursor = 0;
};
LineLayout lay_out(const LineToDraw& line, int columns);

// Remembers what it has drawn, so that the next drawing replaces it.
class LineScreen {
 public:
  // What to send to the terminal.
  std::string draw(const LineToDraw& line, const TerminalSize& size);

  // Leaves the cursor below everything; the next drawing starts a new line.
  std::string leave(const LineToDraw& line, const TerminalSize& size);

  // The terminal was cleared or something else was printed.
  void forget() { cursor_row_ = 0; }

 private:
  int cursor_row_ = 0;  // of the last drawing, from its first row
};

}  // namespace slip
