// A line editor for chats: several lines, history, search. LineEditor decides what keys do and is
// tested without a terminal; LineReader joins it with one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "slipstream/chat/line_editor_history.h"
#include "slipstream/chat/line_editor_keys.h"
#include "slipstream/chat/line_editor_screen.h"
#include "slipstream/chat/line_editor_text.h"

namespace slip {

struct LineEditorOptions {
  std::string prompt = ">>> ";
  std::string continuation = "... ";
  // Whether Enter ends the text; otherwise it begins another line.
  std::function<bool(std::string_view text)> is_complete;
  // What Tab completes at the beginning of the text.
  std::vector<std::string> words;
};

class LineEditor {
 public:
  enum class Outcome { editing, submitted, interrupted, end_of_input, clear_screen, suspend };

  // Both must outlive this.
  LineEditor(const LineEditorOptions& options, const LineHistory& history);

  Outcome press(const KeyPress& press);

  const std::string& text() const { return text_.text(); }

  // What to show now.
  LineToDraw shown() const;

 private:
  struct Search {
    std::string query;
    size_t entry;        // the match is this one, or there is none yet if it is entries().size()
    std::string before;  // the text to go back to
  };

  Outcome edit(const KeyPress& press);
  // False when the key ends the search and is then handled as usual.
  bool search(const KeyPress& press);
  void find_older(size_t before);
  void describe_search();
  void show_older();
  void show_newer();
  void complete_word();

  const LineEditorOptions& options_;
  const LineHistory& history_;
  EditedText text_;
  size_t entry_;       // of the history that is shown; entries().size(): the new text
  std::string draft_;  // the new text while an entry is shown
  std::optional<Search> search_;
  std::string search_prompt_;
};

struct ReadLine {
  enum class Kind { line, interrupted, end_of_input };
  Kind kind;
  std::string text;  // of a line; of an interrupted one what was thrown away
};

// Lets a person edit lines on the terminal.
class LineReader {
 public:
  // All must outlive this.
  LineReader(const LineEditorOptions& options, const LineHistory& history, TerminalMode& mode)
      : options_(options), history_(history), mode_(mode) {}

  ReadLine read();

 private:
  // Waits for keys; false at the end of input.
  bool read_keys(std::vector<KeyPress>& keys);

  const LineEditorOptions& options_;
  const LineHistory& history_;
  TerminalMode& mode_;
  KeyDecoder decoder_;
  std::vector<KeyPress> ahead_;  // typed after Enter: they belong to the next line
};

// The same for terminals that understand no escape sequences.
ReadLine read_plain_line(const LineEditorOptions& options);

}  // namespace slip
