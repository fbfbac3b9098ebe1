#include "grammar/tool_rules.h"

#include <algorithm>

#include "base/json.h"
#include "grammar/characters.h"
#include "grammar/schema.h"
#include "grammar/schema_keywords.h"
#include "grammar/tool_rules_braces.h"

namespace slip {
namespace {

constexpr size_t kMaxTools = 512;

// What would end the value for text/tool_calls.h, or could be taken for a call.
const std::vector<std::string> kTagsOfCalls = {"</parameter>", "<parameter=", "<tool_call>",
                                               "</tool_call>", "<function="};

// Names stand in tags: one line of at most 256 bytes, and no '>'.
bool fits_in_tag(std::string_view name) {
  return !name.empty() && name.size() <= 256 &&
         name.find_first_of(">\r\n") == std::string_view::npos;
}

class ToolRules {
 public:
  ToolRules(JsonRules& json, RuleId text, const Json& tool, bool strict)
      : json_(json), rules_(json.rules()), text_(text) {
    const Json* inner = member_of(&tool, "function");
    declaration_ = inner ? inner : &tool;
    parameters_ = member_of(declaration_, "parameters");
    if (!parameters_) parameters_ = member_of(declaration_, "input_schema");
    const bool is_strict = strict || is_true(member_of(declaration_, "strict"));
    options_ = {.closed_objects = is_strict, .lenient = !is_strict};
  }

  // From the name to the end of the function.
  Result<ExprId> function() {
    const Json* name = member_of(declaration_, "name");
    if (!name || !name->is_string() || !fits_in_tag(text_of(*name)))
      return error("a tool's name: expected one line of text without '>'");
    Result<ExprId> body = all_parameters();
    if (!body.ok()) return std::move(body).failure().in("tool " + std::string(text_of(*name)));
    return rules_.sequence({rules_.literal(cat(text_of(*name), ">\n")), body.value(),
                            rules_.literal("</function>\n")});
  }

 private:
  Result<ExprId> all_parameters() {
    const Json* properties = member_of(parameters_, "properties");
    std::vector<ExprId> parts;
    if (!properties || !properties->is_object()) return rules_.literal("");
    for (const auto& [key, schema] : properties->get_object()) {
      if (!fits_in_tag({key.data(), key.size()}))
        return error("a parameter's name: expected one line of text without '>'");
      SLIP_TRY(const ExprId value, parameter_value(schema));
      const ExprId part =
          rules_.sequence({rules_.literal(cat("<parameter=", std::string(key), ">\n")), value,
                           rules_.literal("\n</parameter>\n")});
      parts.push_back(is_required(Json(key)) ? part : rules_.optional(part));
    }
    return rules_.sequence(std::move(parts));
  }

  bool is_required(const Json& name) const {
    const Json* required = member_of(parameters_, "required");
    return required && required->is_array() &&
           std::find(required->get_array().begin(), required->get_array().end(), name) !=
               required->get_array().end();
  }

  Result<ExprId> parameter_value(const Json& schema) {
    if (const Json* values = listed_values(schema)) return value_texts(*values);
    if (may_be_text(schema, 0)) return rules_.call(text_);
    return add_schema(json_, schema, *parameters_, options_);
  }

  // The values of "enum", or null.
  const Json* listed_values(const Json& schema) const {
    const Json* values = member_of(&schema, "enum");
    return values && values->is_array() && !values->get_array().empty() ? values : nullptr;
  }

  ExprId value_texts(const Json& values) {
    std::vector<std::string> texts;
    for (const Json& value : values.get_array())
      texts.push_back(value.is_string() ? std::string(text_of(value)) : compact_json(value));
    return rules_.literals(std::move(texts));
  }

  // Whether the parser would take any text for a value: where strings are allowed, and where
  // nothing is said about types.
  bool may_be_text(const Json& schema, int depth) const {
    constexpr int kMaxDepth = 16;
    if (!schema.is_object() || depth > kMaxDepth) return true;
    if (const Json* reference = member_of(&schema, "$ref"); reference && reference->is_string()) {
      const std::string_view target = text_of(*reference);
      boost::system::error_code failure;
      const Json* found =
          target.starts_with('#')
              ? parameters_->find_pointer({target.data() + 1, target.size() - 1}, failure)
              : nullptr;
      return !found || may_be_text(*found, depth + 1);
    }
    for (const char* keyword : {"anyOf", "oneOf", "allOf"})
      if (const Json* list = member_of(&schema, keyword); list && list->is_array())
        return std::any_of(list->get_array().begin(), list->get_array().end(),
                           [&](const Json& one) { return may_be_text(one, depth + 1); });
    const Result<TypeSet> types = schema_types(schema.get_object());
    return !types.ok() || types.value().string;
  }

  JsonRules& json_;
  Rules& rules_;
  RuleId text_;  // any text
  const Json* declaration_;
  const Json* parameters_;
  SchemaOptions options_;
};

Result<ExprId> add_tag_calls(JsonRules& json, const JsonArray& tools, bool parallel, bool strict) {
  Rules& rules = json.rules();
  // One rule, so that what is known about its tokens serves every parameter of its kind.
  const RuleId text = rules.add_rule("a parameter's text");
  rules.define(text, rules.text_without(kTagsOfCalls));
  std::vector<ExprId> functions;
  for (const Json& tool : tools) {
    SLIP_TRY(const ExprId function, ToolRules(json, text, tool, strict).function());
    functions.push_back(function);
  }
  const ExprId call =
      rules.sequence({rules.tag("<tool_call>"), rules.literal("\n<function="),
                      rules.choice(std::move(functions)), rules.tag("</tool_call>")});
  const ExprId line_end = rules.literal("\n");
  if (!parallel) return rules.sequence({call, rules.optional(line_end)});
  const ExprId further = rules.sequence({line_end, call});
  return rules.sequence({call, rules.repeat(further, 0, kUnbounded), rules.optional(line_end)});
}

}  // namespace

Result<ExprId> add_tool_calls(JsonRules& json, const OutputFormat& format, const JsonArray& tools,
                              bool parallel, bool strict) {
  if (tools.empty()) return error("tool calls without tools");
  if (tools.size() > kMaxTools) return error("more than ", kMaxTools, " tools");
  switch (format.calls) {
    case OutputFormat::Calls::tags: return add_tag_calls(json, tools, parallel, strict);
    case OutputFormat::Calls::braces: return add_brace_calls(json, format, tools, parallel, strict);
  }
  unreachable("OutputFormat::Calls");
}

}  // namespace slip
