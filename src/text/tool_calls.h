// Tool calls in the XML form that Qwen3.5 writes, parsed as the text arrives:
//   <tool_call> <function=NAME> <parameter=KEY> value </parameter> ... </function> </tool_call>
// <tool_call> and all closing tags may be missing.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "text/tool_calls_value.h"

namespace slip {

struct OutputEvent {
  enum class Kind { reasoning, content, tool_call_start, tool_call_arguments, tool_call_end };
  Kind kind;
  std::string text;  // new text; of a start the function's name; of arguments a piece of JSON
  int index = -1;    // which tool call, from 0
};

// Adds an event, or lengthens the last one where that is the same.
void add_event(std::vector<OutputEvent>& events, OutputEvent event);

class ToolCallParser {
 public:
  explicit ToolCallParser(JsonArray tools) : tools_(std::move(tools)) {}

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

  // `text` begins with <tool_call> or <function=, or goes on after what was consumed before.
  // `final`: no more text will come.
  Progress advance(std::string_view text, bool final, std::vector<OutputEvent>& events);

  int calls() const { return calls_; }

  // What stood inside the last call but outside its parameters; taken by the call.
  std::string take_stray_text();

 private:
  enum class State { before, body, value, after };

  Progress read_start(std::string_view text, bool final, std::vector<OutputEvent>& events);
  Progress read_body(std::string_view text, bool final, std::vector<OutputEvent>& events);
  Progress read_value(std::string_view text, bool final, std::vector<OutputEvent>& events);
  Progress read_after(std::string_view text, bool final);

  void begin_parameter(std::string_view name, std::vector<OutputEvent>& events);
  void add_value_text(std::string_view text, std::vector<OutputEvent>& events);
  void end_parameter(std::vector<OutputEvent>& events);
  void end_call(std::vector<OutputEvent>& events);
  void emit_arguments(std::string json, std::vector<OutputEvent>& events) const;

  JsonArray tools_;
  State state_ = State::before;
  int calls_ = 0;
  std::string function_;
  std::string stray_text_;
  bool has_parameters_ = false;
  ParameterTypes types_;  // of the current parameter
  std::string value_;     // so far, unless it streams as a string
  bool value_begun_ =
      false;  // a first line break, which does not belong to the value, is behind us
};

}  // namespace slip
