// The tools of /v1/responses. Clients group functions in namespaces (Codex: one for each of its MCP
// servers) and offer tools that take a text; models know functions only, with arguments.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/json.h"

namespace slip {

struct ResponsesTool {
  std::string space{};  // the namespace; empty: none
  std::string name{};
  bool takes_text = false;
};

// By the name that the model sees, for those that the client knows as something else.
using ResponsesTools = std::map<std::string, ResponsesTool, std::less<>>;

ResponsesTool tool_called(const ResponsesTools& tools, const std::string& name);

// "mcp__files.read"; a function without a namespace keeps its name.
std::string name_for_model(std::string_view space, std::string_view name);

// A tool that takes a text as a function that does. The grammar of the text, if there is one, is
// told to the model, not enforced.
JsonObject text_function(const JsonObject& tool);

// Its arguments, and the text in them: empty where an answer was cut short.
JsonObject text_arguments(std::string_view text);
std::string text_of_arguments(std::string_view json);

}  // namespace slip
