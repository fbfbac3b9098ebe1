// Tool calls in the XML form that Qwen3.5 writes, parsed as the text arrives:
//   <tool_call> <function=NAME> <parameter=KEY> value </parameter> ... </function> </tool_call>
// <tool_call> and all closing tags may be missing.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "text/tool_calls.h"
#include "text/tool_calls_scan.h"
#include "text/tool_calls_value.h"

namespace slip {

class TagCallParser final : public ToolCallParser {
 public:
  explicit TagCallParser(JsonArray tools) : tools_(std::move(tools)) {}

  Progress advance(std::string_view text, bool final, std::vector<OutputEvent>& events) override;

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

  JsonArray tools_;
  State state_ = State::before;
  std::string function_;
  bool has_parameters_ = false;
  ParameterTypes types_;  // of the current parameter
  std::string value_;     // so far, unless it streams as a string
  JsonStrings strings_;   // of it
  bool value_begun_ =
      false;  // a first line break, which does not belong to the value, is behind us
};

}  // namespace slip
