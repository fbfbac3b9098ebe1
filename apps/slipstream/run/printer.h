// Writes an answer while it is being made: thoughts apart from what is meant for the reader.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "slipstream/common/terminal.h"
#include "slipstream/common/terminal_wrap.h"
#include "text/output_parser.h"

namespace slip {

enum class ThoughtStyle {
  hidden,
  tagged,  // <think> ... </think>
  dimmed,  // on terminals with colours
};

struct PrintStyle {
  ThoughtStyle thoughts = ThoughtStyle::hidden;
  bool escapes = false;  // hidden thoughts are announced by a line that goes away again
  bool to_terminal = false;
  int columns = 0;  // where to break lines; 0: nowhere
  Styles styles{false};
};

class AnswerPrinter {
 public:
  // False: nobody reads any more.
  using Sink = std::function<bool(std::string_view)>;

  AnswerPrinter(const PrintStyle& style, Sink sink)
      : style_(style), sink_(std::move(sink)), wrap_(style.columns) {}

  // While a long prompt is read; goes away when the answer begins.
  void reading(int64_t done, int64_t total);

  void print(const OutputEvent& event);

  // Ends open styles and the last line.
  void finish();

  bool reader_gone() const { return gone_; }

 private:
  enum class Part { nothing, thoughts, answer };

  void begin_thoughts();
  void end_thoughts();
  void begin_answer();
  void end_reading();
  void write(std::string_view text);
  // Styles and what else is not text; comes after all text so far.
  void control(std::string_view sequence);
  void send(std::string_view text);

  PrintStyle style_;
  Sink sink_;
  WordWrap wrap_;
  Part part_ = Part::nothing;
  Stopwatch clock_;
  bool reading_shown_ = false;
  int thought_pieces_ = 0;
  char last_ = '\n';
  bool gone_ = false;
};

}  // namespace slip
