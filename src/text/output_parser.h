// Splits what a model writes into reasoning, content and tool calls, while it is being written. The
// joined result does not depend on how the text was cut into pieces.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/output_event.h"
#include "text/output_format.h"
#include "text/reasoning.h"
#include "text/tool_calls.h"

namespace slip {

class OutputParser {
 public:
  // Where calls of tools may stand: behind any text; where the answer begins, and behind each
  // other; or nowhere, for those who offered no tools. Elsewhere what looks like a call is content.
  enum class Calls { anywhere, first, as_content };

  // `format` must outlive this. `starts_in_reasoning`: the prompt ended inside the model's
  // thoughts. The schemas of `tools` decide which type a tool call's values get.
  OutputParser(const OutputFormat& format, bool starts_in_reasoning, const JsonArray& tools,
               Calls calls = Calls::anywhere);

  // Text that could still turn out to be a tag, or white space before a tool call, is held back.
  std::vector<OutputEvent> feed(std::string_view new_text);

  // To be said before finish() if a limit ended the text.
  void cut_off() { calls_->cut_off(); }

  // Everything that was held back. Call once, at the end.
  std::vector<OutputEvent> finish();

  // What was fed last is, or may still become, part of the model's thoughts.
  bool in_reasoning() const { return mode_ == Mode::reasoning; }

 private:
  enum class Mode { start, reasoning, content, tool_call };
  enum class Trim { nothing, newlines, blanks };

  std::vector<OutputEvent> run(bool final);
  // Each returns false when it can do no more with the text it has.
  bool run_start(bool final);
  bool run_reasoning(bool final, std::vector<OutputEvent>& events);
  bool run_content(bool final, std::vector<OutputEvent>& events);
  bool run_tool_call(bool final, std::vector<OutputEvent>& events);
  void begin_reasoning(ThoughtsOpenedBy by);
  void begin_call();
  void emit_content(std::string_view text, std::vector<OutputEvent>& events);
  std::string_view rest() const { return std::string_view(pending_).substr(at_); }

  const OutputFormat* format_;
  Mode mode_ = Mode::start;
  Mode before_call_ = Mode::start;  // where to go on if it is none
  Calls meaning_;
  std::unique_ptr<ToolCallParser> calls_;
  std::optional<ThoughtsOpenedBy> title_of_;  // thoughts whose title may come
  std::string pending_;                       // text not yet decided begins at at_
  size_t at_ = 0;
  Trim trim_ = Trim::nothing;  // what the next content loses at its front
  std::string held_blanks_;    // white space at the end of content; dropped before a tool call
  bool has_content_ = false;
  bool had_reasoning_ = false;
};

}  // namespace slip
