#include "server/responses_tools.h"

namespace slip {

ResponsesTool tool_called(const ResponsesTools& tools, const std::string& name) {
  const auto found = tools.find(name);
  return found == tools.end() ? ResponsesTool{.name = name} : found->second;
}

std::string name_for_model(std::string_view space, std::string_view name) {
  return space.empty() ? std::string(name) : cat(space, ".", name);
}

JsonObject text_function(const JsonObject& tool) {
  std::string description(text_or_empty(tool.if_contains("description")));
  const Json* format = tool.if_contains("format");
  if (const std::string_view grammar = text_or_empty(member_of(format, "definition"));
      !grammar.empty())
    description += cat("\n\nThe input follows this grammar:\n", grammar);
  const JsonObject parameters = {
      {"type", "object"},
      {"properties", JsonObject{{"input", JsonObject{{"type", "string"}}}}},
      {"required", JsonArray{"input"}}};
  return {{"name", text_or_empty(tool.if_contains("name"))},
          {"description", description},
          {"parameters", parameters}};
}

JsonObject text_arguments(std::string_view text) { return {{"input", text}}; }

std::string text_of_arguments(std::string_view json) {
  const Result<Json> parsed = parse_json(json, "arguments");
  return std::string(parsed.ok() ? text_or_empty(member_of(&parsed.value(), "input")) : "");
}

}  // namespace slip
