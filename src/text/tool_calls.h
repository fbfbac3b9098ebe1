// Tool calls in a model's output, parsed as the text arrives.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/output_event.h"
#include "text/output_format.h"

namespace slip {

class ToolCallParser {
 public:
  virtual ~ToolCallParser() = default;

  enum class Status {
    undecided,   // more text is needed
    not_a_call,  // the text does not begin with a call, nothing was consumed
    in_call,     // call again with the rest
    done,        // the call has ended, the rest is not part of it
  };
  struct Progress {
    Status status;
    size_t consumed = 0;
  };

  // `text` begins with what opens a call, or goes on after what was consumed before. `final`: no
  // more text will come.
  virtual Progress advance(std::string_view text, bool final, std::vector<OutputEvent>& events) = 0;

  // The text will end at a limit, not where the model ended it: a call that is not complete then
  // keeps arguments that are no JSON, so that nobody takes them for all.
  void cut_off() { cut_off_ = true; }

  // How many calls have ended.
  int calls() const { return calls_; }

  // What stood inside the last call but outside its arguments; taken by the call.
  std::string take_stray_text();

 protected:
  void emit_start(const std::string& function, std::vector<OutputEvent>& events) const;
  void emit_arguments(std::string json, std::vector<OutputEvent>& events) const;
  void emit_end(std::vector<OutputEvent>& events);
  bool is_cut_off() const { return cut_off_; }

  std::string stray_text_;

 private:
  int calls_ = 0;
  bool cut_off_ = false;
};

// The schemas of `tools` decide which type a value gets where the format leaves that open.
std::unique_ptr<ToolCallParser> make_tool_call_parser(const OutputFormat& format, JsonArray tools);

}  // namespace slip
