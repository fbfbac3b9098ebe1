// What parsers tell about the text a model writes.
#pragma once

#include <string>
#include <vector>

namespace slip {

struct OutputEvent {
  enum class Kind { reasoning, content, tool_call_start, tool_call_arguments, tool_call_end };
  Kind kind;
  std::string text;  // new text; of a start the function's name; of arguments a piece of JSON
  int index = -1;    // which tool call, from 0
};

// Adds an event, or lengthens the last one where that is the same.
void add_event(std::vector<OutputEvent>& events, OutputEvent event);

}  // namespace slip
