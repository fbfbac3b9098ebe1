#include "text/tool_calls_value.h"

#include <algorithm>
#include <unordered_set>

#include "base/ascii.h"
#include "base/json.h"
#include "base/json_dump.h"
#include "text/tool_calls_scan.h"

namespace slip {
namespace {

// References and alternatives may nest, or form a ring.
constexpr int kMaxSchemaDepth = 16;

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

// Looks at each schema once, however many ways lead to it.
class TypeFinder {
 public:
  explicit TypeFinder(const Json& root) : root_(root) {}

  // `schema` is that of all parameters, or a part of it.
  void add_parameter(const Json& schema, std::string_view name, int depth = 0) {
    if (!enter(schema, depth, lists_seen_)) return;
    const Json* listed = member_of(member_of(&schema, "properties"), name);
    if (!listed) listed = member_of(&schema, "additionalProperties");
    if (listed) add(*listed, 0);
    for_each_part(schema, [&](const Json& part) { add_parameter(part, name, depth + 1); });
  }

  const ParameterTypes& types() const { return types_; }

 private:
  static bool enter(const Json& schema, int depth, std::unordered_set<const Json*>& seen) {
    return schema.is_object() && depth <= kMaxSchemaDepth && seen.insert(&schema).second;
  }

  void add(const Json& schema, int depth) {
    if (!enter(schema, depth, seen_)) return;
    const Json* type = member_of(&schema, "type");
    if (type && type->is_string()) add_type(types_, json_view(type->get_string()));
    if (type && type->is_array())
      for (const Json& one : type->get_array())
        if (one.is_string()) add_type(types_, json_view(one.get_string()));
    const auto add_value = [&](const Json& value) {
      if (!type) add_type_of(types_, value);
      if (value.is_string()) types_.texts.push_back(json_view(value.get_string()));
    };
    if (const Json* values = member_of(&schema, "enum"); values && values->is_array())
      for (const Json& value : values->get_array()) add_value(value);
    if (const Json* value = member_of(&schema, "const")) add_value(*value);
    if (is_true(member_of(&schema, "nullable"))) types_.null = true;
    for_each_part(schema, [&](const Json& part) { add(part, depth + 1); });
  }

  template <class Visit>
  void for_each_part(const Json& schema, const Visit& visit) {
    const std::string_view reference = text_or_empty(member_of(&schema, "$ref"));
    boost::system::error_code failure;
    if (reference.starts_with('#'))
      if (const Json* target = root_.find_pointer(reference.substr(1), failure)) visit(*target);
    for (const char* key : {"anyOf", "oneOf", "allOf"})
      if (const Json* schemas = member_of(&schema, key); schemas && schemas->is_array())
        for (const Json& one : schemas->get_array()) visit(one);
  }

  const Json& root_;
  ParameterTypes types_;
  std::unordered_set<const Json*> seen_;
  std::unordered_set<const Json*> lists_seen_;
};

// Whether it lies in "function" or not.
const Json& declaration_in(const Json& tool) {
  const Json* inner = member_of(&tool, "function");
  return inner ? *inner : tool;
}

const Json* find_declaration(const JsonArray& tools, std::string_view function) {
  const auto found = std::ranges::find_if(tools, [&](const Json& tool) {
    const Json* name = member_of(&declaration_in(tool), "name");
    return name && name->is_string() && text_or_empty(name) == function;
  });
  return found != tools.end() ? &declaration_in(*found) : nullptr;
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

bool has_tool(const JsonArray& tools, std::string_view function) {
  return find_declaration(tools, function) != nullptr;
}

ParameterTypes find_parameter_types(const JsonArray& tools, std::string_view function,
                                    std::string_view parameter) {
  const Json* declaration = find_declaration(tools, function);
  const Json* root = member_of(declaration, "parameters");
  if (!root) root = member_of(declaration, "input_schema");
  if (!root) return {};
  TypeFinder finder(*root);
  finder.add_parameter(*root, parameter);
  return finder.types();
}

std::string convert_parameter(std::string_view text, const ParameterTypes& types) {
  if (std::find(types.texts.begin(), types.texts.end(), text) != types.texts.end())
    return json_quoted(text);
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
