#include "text/tool_calls_value.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/json.h"
#include "base/json_dump.h"
#include "text/tool_calls_scan.h"

namespace slip {
namespace {

// References and alternatives may nest, or form a ring.
constexpr int kMaxSchemaDepth = 16;

// "#/$defs/Unit" from the root of the parameters; nothing else is followed.
const Json* follow_reference(const Json& root, std::string_view reference) {
  if (!reference.starts_with("#/")) return nullptr;
  reference.remove_prefix(2);
  const Json* at = &root;
  while (at && !reference.empty()) {
    const size_t end = std::min(reference.find('/'), reference.size());
    at = member_of(at, reference.substr(0, end));
    reference.remove_prefix(std::min(end + 1, reference.size()));
  }
  return at;
}

void add_type(ParameterTypes& types, std::string_view name) {
  if (name == "null") types.null = true;
  if (name == "boolean") types.boolean = true;
  if (name == "integer") types.integer = true;
  if (name == "number") types.number = true;
  if (name == "object") types.object = true;
  if (name == "array") types.array = true;
}

void add_type_of(ParameterTypes& types, const Json& value) {
  types.null |= value.is_null();
  types.boolean |= value.is_bool();
  types.integer |= value.is_int64() || value.is_uint64();
  types.number |= value.is_double();
}

void add_types(ParameterTypes& types, const Json& root, const Json& schema, int depth) {
  if (!schema.is_object() || depth > kMaxSchemaDepth) return;
  if (const Json* reference = member_of(&schema, "$ref"); reference && reference->is_string())
    if (const Json* target = follow_reference(root, json_view(reference->get_string())))
      add_types(types, root, *target, depth + 1);
  const Json* type = member_of(&schema, "type");
  if (type && type->is_string()) add_type(types, json_view(type->get_string()));
  if (type && type->is_array())
    for (const Json& one : type->get_array())
      if (one.is_string()) add_type(types, json_view(one.get_string()));
  if (!type) {
    if (const Json* values = member_of(&schema, "enum"); values && values->is_array())
      for (const Json& value : values->get_array()) add_type_of(types, value);
    if (const Json* value = member_of(&schema, "const")) add_type_of(types, *value);
  }
  for (const char* key : {"anyOf", "oneOf", "allOf"})
    if (const Json* schemas = member_of(&schema, key); schemas && schemas->is_array())
      for (const Json& one : schemas->get_array()) add_types(types, root, one, depth + 1);
  const Json* nullable = member_of(&schema, "nullable");
  if (nullable && nullable->is_bool() && nullable->get_bool()) types.null = true;
}

const Json* find_parameters(const JsonArray& tools, std::string_view function) {
  for (const Json& tool : tools) {
    const Json* inner = member_of(&tool, "function");
    const Json* declaration = inner ? inner : &tool;
    const Json* name = member_of(declaration, "name");
    if (!name || !name->is_string() || json_view(name->get_string()) != function) continue;
    const Json* parameters = member_of(declaration, "parameters");
    return parameters ? parameters : member_of(declaration, "input_schema");
  }
  return nullptr;
}

// Digits of any length, so that no integer is rounded. Empty: not an integer.
std::string as_integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return "";
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size() - 1));
  return (negative && text != "0" ? "-" : "") + std::string(text);
}

}  // namespace

ParameterTypes find_parameter_types(const JsonArray& tools, std::string_view function,
                                    std::string_view parameter) {
  ParameterTypes types;
  const Json* root = find_parameters(tools, function);
  const Json* schema = member_of(member_of(root, "properties"), parameter);
  if (schema) add_types(types, *root, *schema, 0);
  return types;
}

std::string convert_parameter(std::string_view text, const ParameterTypes& types) {
  const std::string_view bare = trimmed(text);
  // Templates print earlier values as Python does, so models write True and None too.
  if (types.null && (bare == "null" || bare == "None")) return "null";
  if (types.boolean && equal_ignoring_case(bare, "true")) return "true";
  if (types.boolean && equal_ignoring_case(bare, "false")) return "false";
  if (types.integer || types.number)
    if (std::string digits = as_integer(bare); !digits.empty()) return digits;
  if (types.number || types.object || types.array) {
    const Result<Json> parsed = parse_json(bare, "parameter");
    const bool fits = parsed.ok() && ((types.number && parsed.value().is_number()) ||
                                      (types.object && parsed.value().is_object()) ||
                                      (types.array && parsed.value().is_array()));
    if (fits) return std::string(bare);  // as written: printing it again could round numbers
  }
  return json_quoted(text);
}

}  // namespace slip
