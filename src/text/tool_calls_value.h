// The type of a tool parameter, from the tool's JSON schema, and values of that type from the plain
// text that a model writes between parameter tags.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace slip {

// The types that a schema allows; several with "type" lists and anyOf. None means text.
struct ParameterTypes {
  bool null = false;
  bool boolean = false;
  bool integer = false;
  bool number = false;
  bool object = false;
  bool array = false;
  // Texts that the schema lists, which may look like other values. They are borrowed from it.
  std::vector<std::string_view> texts = {};

  bool may_be_json() const { return object || array; }
  // Then the value is always a string, whatever it looks like.
  bool only_text() const { return !(null || boolean || integer || number || object || array); }
};

// `tools` as clients send them: {"type": "function", "function": {...}}, or the inner object alone,
// with "parameters" or "input_schema".
bool has_tool(const JsonArray& tools, std::string_view function);
ParameterTypes find_parameter_types(const JsonArray& tools, std::string_view function,
                                    std::string_view parameter);

// The JSON of a value written as `text`; a string where no allowed type fits.
std::string convert_parameter(std::string_view text, const ParameterTypes& types);

}  // namespace slip
