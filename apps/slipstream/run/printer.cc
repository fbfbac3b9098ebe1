#include "slipstream/run/printer.h"

#include <utility>

#include "slipstream/common/terminal_text.h"

namespace slip {

void AnswerPrinter::reading(int64_t done, int64_t total) {
  constexpr double kPatience = 0.5;  // seconds without a sign of life
  if (!style_.escapes || done == total || clock_.seconds() < kPatience) return;
  reading_shown_ = true;
  control(cat("\r\033[K", style_.styles.dim, "reading ", 100 * done / total, " % of ", total,
              " tokens", style_.styles.plain));
}

void AnswerPrinter::end_reading() {
  if (std::exchange(reading_shown_, false)) control("\r\033[K");
}

void AnswerPrinter::print(const OutputEvent& event) {
  end_reading();
  switch (event.kind) {
    case OutputEvent::Kind::reasoning:
      if (event.text.empty()) break;
      if (part_ != Part::thoughts) begin_thoughts();
      if (style_.thoughts != ThoughtStyle::hidden) {
        write(event.text);
      } else if (style_.escapes && ++thought_pieces_ % 16 == 0) {
        const std::string dots(size_t(thought_pieces_ / 16 % 4 + 1), '.');
        control(cat("\r\033[K", style_.styles.dim, "thinking", dots, style_.styles.plain));
      }
      break;
    case OutputEvent::Kind::content:
      if (event.text.empty()) break;
      begin_answer();
      write(event.text);
      break;
    case OutputEvent::Kind::tool_call_start:
      begin_answer();
      if (last_ != '\n') write("\n");
      write("call " + event.text + " ");
      break;
    case OutputEvent::Kind::tool_call_arguments: write(event.text); break;
    case OutputEvent::Kind::tool_call_end: write("\n"); break;
  }
}

void AnswerPrinter::begin_thoughts() {
  part_ = Part::thoughts;
  switch (style_.thoughts) {
    case ThoughtStyle::hidden:
      if (style_.escapes) control(cat(style_.styles.dim, "thinking.", style_.styles.plain));
      break;
    case ThoughtStyle::tagged: write("<think>\n"); break;
    case ThoughtStyle::dimmed: control(style_.styles.dim); break;
  }
}

void AnswerPrinter::end_thoughts() {
  switch (style_.thoughts) {
    case ThoughtStyle::hidden:
      if (style_.escapes) control("\r\033[K");
      break;
    case ThoughtStyle::tagged: write(last_ == '\n' ? "</think>\n\n" : "\n</think>\n\n"); break;
    case ThoughtStyle::dimmed:
      control(style_.styles.plain);
      write(last_ == '\n' ? "\n" : "\n\n");
      break;
  }
}

void AnswerPrinter::begin_answer() {
  if (part_ == Part::thoughts) end_thoughts();
  part_ = Part::answer;
}

void AnswerPrinter::finish() {
  end_reading();
  if (part_ == Part::thoughts) {
    if (style_.thoughts == ThoughtStyle::hidden && style_.escapes) control("\r\033[K");
    if (style_.thoughts == ThoughtStyle::dimmed) control(style_.styles.plain);
  }
  if (last_ != '\n') write("\n");
  if (style_.columns > 0) send(wrap_.finish());
}

void AnswerPrinter::write(std::string_view text) {
  if (text.empty()) return;
  last_ = text.back();
  // A file gets the bytes; a terminal would obey them.
  std::string shown = style_.to_terminal ? without_controls(text) : std::string(text);
  send(style_.columns > 0 ? wrap_.push(shown) : shown);
}

void AnswerPrinter::control(std::string_view sequence) {
  if (style_.columns > 0) send(wrap_.finish());
  send(sequence);
}

void AnswerPrinter::send(std::string_view text) {
  if (!text.empty() && !gone_) gone_ = !sink_(text);
}

}  // namespace slip
