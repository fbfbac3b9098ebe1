#include "grammar/tool_rules.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/json.h"
#include "grammar/characters.h"
#include "grammar/schema.h"
#include "grammar/schema_keywords.h"
#include "grammar/tool_rules_braces.h"

namespace slip {
namespace {

constexpr size_t kMaxTools = 512;

// Of parameters that a schema allows but does not name.
const CharSet kNameCharacters = {{'-', '.'}, {'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
constexpr int64_t kMaxOtherName = 64;

// What would end the value for text/tool_calls.h, or could be taken for a call.
const std::vector<std::string> kTagsOfCalls = {"</parameter>", "<parameter=", "<tool_call>",
                                               "</tool_call>", "<function="};

// Names stand in tags: one line of at most 256 bytes, and neither '<' nor '>'.
bool fits_in_tag(std::string_view name) {
  return !name.empty() && name.size() <= 256 &&
         name.find_first_of("<>\r\n") == std::string_view::npos;
}

bool has_tag(std::string_view text) {
  return std::any_of(kTagsOfCalls.begin(), kTagsOfCalls.end(), [&](const std::string& tag) {
    return text.find(tag) != std::string_view::npos;
  });
}

// Texts between tags. Each kind is one rule, so that what is known about its tokens serves every
// parameter of its kind.
class TextRules {
 public:
  explicit TextRules(Rules& rules) : rules_(rules), any_(of_length(0, kUnbounded)) {}

  ExprId any() { return any_; }
  ExprId of_length(int64_t min, int64_t max) {
    const auto [known, is_new] = of_length_.try_emplace({min, max});
    if (is_new) {
      known->second = rules_.add_rule("a parameter's text");
      rules_.define(known->second, rules_.text_without(kTagsOfCalls, min, max));
    }
    return rules_.call(known->second);
  }

 private:
  Rules& rules_;
  std::map<std::pair<int64_t, int64_t>, RuleId> of_length_;
  ExprId any_;
};

class ToolRules {
 public:
  ToolRules(JsonRules& json, TextRules& texts, const Json& tool, bool strict)
      : json_(json), rules_(json.rules()), texts_(texts) {
    const Json* inner = member_of(&tool, "function");
    declaration_ = inner ? inner : &tool;
    parameters_ = member_of(declaration_, "parameters");
    if (!parameters_) parameters_ = member_of(declaration_, "input_schema");
    strict_ = strict || is_true(member_of(declaration_, "strict"));
    options_ = {.closed_objects = strict_, .lenient = !strict_};
  }

  // From the name to the end of the function.
  Result<ExprId> function() {
    const Json* name = member_of(declaration_, "name");
    if (!name || !name->is_string() || !fits_in_tag(text_of(*name)))
      return error("a tool's name: expected one line of text without '<' and '>'");
    Result<ExprId> body = all_parameters();
    if (!body.ok()) return std::move(body).failure().in("tool " + std::string(text_of(*name)));
    return rules_.sequence({rules_.literal(cat(text_of(*name), ">\n")), body.value(),
                            rules_.literal("</function>\n")});
  }

 private:
  Result<ExprId> all_parameters() {
    if (!parameters_ || parameters_->is_null()) return rules_.literal("");
    SLIP_TRY_STATUS(check_depth(*parameters_));
    return add_schema(json_, *parameters_, *parameters_, options_,
                      [&](const JsonObject& schema) { return parameters_of(schema); });
  }

  Result<ExprId> parameters_of(const JsonObject& schema) {
    if (strict_)
      for (const char* keyword : {"enum", "const", "minProperties", "maxProperties"})
        if (schema.contains(keyword))
          return error("\"", keyword, "\" cannot be enforced on the parameters of a tool");
    std::vector<ExprId> parts;
    std::vector<std::string> names = {""};
    const auto add = [&](std::string_view name, const Json& of_value, bool required) -> Status {
      SLIP_TRY_STATUS(check_expressions(rules_));
      if (!fits_in_tag(name))
        return error("a parameter's name: expected one line of text without '<' and '>'");
      Result<ExprId> value = parameter_value(of_value);
      if (!value.ok()) return std::move(value).failure().in(cat("parameter ", name));
      const ExprId part = parameter(rules_.literal(name), value.value());
      parts.push_back(required ? part : rules_.optional(part));
      names.emplace_back(name);
      return {};
    };
    static const Json kAnything = true;
    static const JsonArray kNone;
    const Json* listed = schema.if_contains("required");
    const JsonArray& required = listed && listed->is_array() ? listed->get_array() : kNone;
    std::unordered_set<Json> left(required.begin(), required.end());
    const Json* properties = schema.if_contains("properties");
    if (properties && properties->is_object())
      for (const auto& [key, of_value] : properties->get_object())
        SLIP_TRY_STATUS(add(json_view(key), of_value, left.erase(Json(key)) > 0));
    const Json* others = other_parameters(schema, strict_);
    for (const Json& name : required) {
      if (left.erase(name) == 0 || !name.is_string()) continue;
      if (strict_ && !others)
        return error("required: \"", text_of(name), "\" is not among the properties");
      SLIP_TRY_STATUS(add(text_of(name), others ? *others : kAnything, true));
    }
    if (others) {
      SLIP_TRY(const ExprId name, json_.other_name(names, kNameCharacters, kMaxOtherName, {}));
      SLIP_TRY(const ExprId value, parameter_value(*others));
      parts.push_back(rules_.repeat(parameter(name, value), 0, kUnbounded));
    }
    return rules_.sequence(std::move(parts));
  }

  ExprId parameter(ExprId name, ExprId value) {
    return rules_.sequence({rules_.literal("<parameter="), name, rules_.literal(">\n"), value,
                            rules_.literal("\n</parameter>\n")});
  }

  // A text is written as it is, and everything else as JSON. A reader takes what looks like JSON
  // of a possible type for that, so beside free text nothing else can be held to a form.
  Result<ExprId> parameter_value(const Json& schema) {
    may_be_any_text_ = may_be_text_ = has_other_form_ = false;
    Result<ExprId> value = add_schema(json_, schema, *parameters_, options_,
                                      [&](const JsonObject& one) { return value_of(one); });
    if (!strict_) return !value.ok() || may_be_any_text_ ? texts_.any() : value;
    if (value.ok() && may_be_text_ && has_other_form_)
      return error(
          "what may be a text or something else that is more than a word or a number "
          "cannot be enforced; leave one of them out or make the tool not strict");
    return value;
  }

  Result<ExprId> value_of(const JsonObject& schema) {
    if (schema.contains("enum") || schema.contains("const")) return one_of_values(schema);
    SLIP_TRY(TypeSet types, schema_types(schema));
    std::vector<ExprId> ways;
    if (types.string) {
      SLIP_TRY(const ExprId text, text_of_form(schema));
      ways.push_back(text);
      may_be_text_ = true;
      // Where nothing is said about types, readers take everything for a text.
      if (!schema.contains("type") && types.number && types.object) return text;
    }
    JsonArray others;
    if (types.object) others.emplace_back("object");
    if (types.array) others.emplace_back("array");
    if (types.number) others.emplace_back("number");
    if (types.integer && !types.number) others.emplace_back("integer");
    if (types.boolean) others.emplace_back("boolean");
    if (types.null) others.emplace_back("null");
    if (others.empty()) return rules_.choice(std::move(ways));
    has_other_form_ |= types.object || types.array;
    for (const char* bound : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
      has_other_form_ |= types.integer && schema.contains(bound);
    JsonObject rest = schema;
    rest["type"] = std::move(others);
    rest.erase("nullable");
    SLIP_TRY_STATUS(json_.count_copied(compact_json(rest).size()));
    SLIP_TRY(const ExprId other, add_schema(json_, rest, *parameters_, options_));
    ways.push_back(other);
    return rules_.choice(std::move(ways));
  }

  Result<ExprId> one_of_values(const JsonObject& schema) {
    SLIP_TRY(const JsonArray values, listed_values(schema, options_.lenient));
    std::vector<std::string> texts;
    for (const Json& value : values) {
      texts.push_back(value.is_string() ? std::string(text_of(value)) : compact_json(value));
      if (value.is_string() && has_tag(texts.back()))
        return error("enum: \"", texts.back(), "\" has a tag of tool calls in it");
    }
    return texts.empty() ? rules_.choice({}) : rules_.literals(std::move(texts));
  }

  Result<ExprId> text_of_form(const JsonObject& schema) {
    SLIP_TRY(StringForm form, read_string_form(schema, options_.lenient));
    // What is followed is narrower than what is meant: patterns without any '<', formats without
    // their rare spellings. Hints must not take that away.
    const bool is_pattern = form.meaning == RegexMeaning::part;
    if (form.regex &&
        (strict_ || (is_pattern && !regex_may_contain(*form.regex, form.meaning, '<'))))
      return regex_expression(rules_, *form.regex, form.meaning, Spelling::no_tags);
    may_be_any_text_ |= form.min == 0 && form.max == kUnbounded;
    return texts_.of_length(form.min, form.max);
  }

  JsonRules& json_;
  Rules& rules_;
  TextRules& texts_;
  const Json* declaration_;
  const Json* parameters_;
  bool strict_;
  SchemaOptions options_;
  // What the parameter at hand may be.
  bool may_be_any_text_ = false;
  bool may_be_text_ = false;
  bool has_other_form_ = false;  // than a word or a number
};

Result<ExprId> add_tag_calls(JsonRules& json, const JsonArray& tools, bool parallel, bool strict) {
  Rules& rules = json.rules();
  TextRules texts(rules);
  std::vector<ExprId> functions;
  for (const Json& tool : tools) {
    SLIP_TRY(const ExprId function, ToolRules(json, texts, tool, strict).function());
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
