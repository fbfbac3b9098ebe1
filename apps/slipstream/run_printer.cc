#include "run_printer.h"

#include "terminal_text.h"

namespace slip {

void AnswerPrinter::print(const OutputEvent& event) {
  switch (event.kind) {
    case OutputEvent::Kind::reasoning:
      if (event.text.empty()) break;
      if (part_ != Part::thoughts) begin_thoughts();
      if (style_.thoughts != Thoughts::hidden) {
        write(event.text);
      } else if (style_.escapes && ++thought_pieces_ % 16 == 0) {
        const std::string dots(size_t(thought_pieces_ / 16 % 4 + 1), '.');
        sink_(cat("\r\033[K", style_.styles.dim, "thinking", dots, style_.styles.plain));
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
    case Thoughts::hidden:
      if (style_.escapes) sink_(cat(style_.styles.dim, "thinking.", style_.styles.plain));
      break;
    case Thoughts::tagged: write("<think>\n"); break;
    case Thoughts::dimmed: sink_(style_.styles.dim); break;
  }
}

void AnswerPrinter::end_thoughts() {
  switch (style_.thoughts) {
    case Thoughts::hidden:
      if (style_.escapes) sink_("\r\033[K");
      break;
    case Thoughts::tagged: write(last_ == '\n' ? "</think>\n\n" : "\n</think>\n\n"); break;
    case Thoughts::dimmed:
      sink_(style_.styles.plain);
      write(last_ == '\n' ? "\n" : "\n\n");
      break;
  }
}

void AnswerPrinter::begin_answer() {
  if (part_ == Part::thoughts) end_thoughts();
  part_ = Part::answer;
}

void AnswerPrinter::finish() {
  if (part_ == Part::thoughts) {
    if (style_.thoughts == Thoughts::hidden && style_.escapes) sink_("\r\033[K");
    if (style_.thoughts == Thoughts::dimmed) sink_(style_.styles.plain);
  }
  if (last_ != '\n') write("\n");
}

void AnswerPrinter::write(std::string_view text) {
  if (text.empty() || gone_) return;
  last_ = text.back();
  // A file gets the bytes; a terminal would obey them.
  gone_ = !sink_(style_.to_terminal ? without_controls(text) : std::string(text));
}

}  // namespace slip
