#include "grammar/tool_rules_braces.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/json.h"
#include "grammar/characters.h"
#include "grammar/schema.h"
#include "grammar/schema_keywords.h"

namespace slip {
namespace {

constexpr int kMaxToolDepth = 32;

// Of members that a schema allows but does not name.
const CharSet kNameCharacters = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
constexpr int64_t kMaxOtherName = 64;

// Keys and names are bare, so what ends them must not be in them.
bool can_stand_bare(std::string_view name) {
  return !name.empty() && name.size() <= 256 &&
         name.find_first_of(":{}<,\r\n") == std::string_view::npos && name[0] != ' ' &&
         name.back() != ' ';
}

bool comes_before(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; };
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [&](char x, char y) { return lower(x) < lower(y); });
}

// What all tools share: values of no particular schema.
class AnyValue {
 public:
  AnyValue(JsonRules& json, const OutputFormat& format)
      : rules_(json.rules()),
        quote_(rules_.tag(format.quote)),
        text_(rules_.add_rule("a text in quotes")),
        value_(rules_.add_rule("any value of a call")),
        list_(rules_.add_rule("any list of a call")),
        map_(rules_.add_rule("any map of a call")) {
    rules_.define(text_, in_quotes(rules_.text_without({std::string(format.quote)})));
    rules_.define(value_, rules_.choice({text(), json.number(), json.boolean(),
                                         rules_.literal("null"), list(), map()}));
    ByteSet key_bytes = ByteSet::range('0', '9');
    key_bytes |= ByteSet::range('a', 'z');
    key_bytes |= ByteSet::range('A', 'Z');
    key_bytes.add('_');
    const ExprId key = rules_.repeat(rules_.bytes(key_bytes), 1, 64);
    const ExprId member = rules_.sequence({key, rules_.literal(":"), value()});
    rules_.define(list_, enclosed("[", repeated(value(), 0, kUnbounded), "]"));
    rules_.define(map_, enclosed("{", repeated(member, 0, kUnbounded), "}"));
  }

  ExprId text() { return rules_.call(text_); }
  ExprId value() { return rules_.call(value_); }
  ExprId list() { return rules_.call(list_); }
  ExprId map() { return rules_.call(map_); }

  ExprId in_quotes(ExprId inner) { return rules_.sequence({quote_, inner, quote_}); }
  ExprId enclosed(std::string_view open, ExprId inner, std::string_view close) {
    return rules_.sequence({rules_.literal(open), inner, rules_.literal(close)});
  }
  // `min` to `max` items with commas between them.
  ExprId repeated(ExprId item, int64_t min, int64_t max) {
    if (max == 0) return rules_.literal("");
    const ExprId further = rules_.sequence({rules_.literal(","), item});
    const ExprId some =
        rules_.sequence({item, rules_.repeat(further, std::max<int64_t>(min - 1, 0),
                                             max == kUnbounded ? kUnbounded : max - 1)});
    return min > 0 ? some : rules_.optional(some);
  }

  // A given value.
  ExprId literal(const Json& value) {
    if (value.is_string()) return in_quotes(rules_.literal(text_of(value)));
    std::vector<ExprId> parts;
    const auto comma = [&] {
      if (!parts.empty()) parts.push_back(rules_.literal(","));
    };
    if (value.is_array()) {
      for (const Json& item : value.get_array()) comma(), parts.push_back(literal(item));
      return enclosed("[", rules_.sequence(std::move(parts)), "]");
    }
    if (value.is_object()) {
      std::vector<std::pair<std::string, const Json*>> members;
      for (const auto& entry : value.get_object())
        members.emplace_back(entry.key(), &entry.value());
      std::sort(members.begin(), members.end(),
                [](const auto& a, const auto& b) { return comes_before(a.first, b.first); });
      for (const auto& [key, item] : members) {
        comma();
        parts.push_back(rules_.sequence({rules_.literal(key + ":"), literal(*item)}));
      }
      return enclosed("{", rules_.sequence(std::move(parts)), "}");
    }
    return rules_.literal(compact_json(value));
  }

 private:
  Rules& rules_;
  ExprId quote_;
  RuleId text_, value_, list_, map_;
};

class BraceTool {
 public:
  BraceTool(JsonRules& json, AnyValue& any, const Json& tool, bool strict)
      : json_(json), rules_(json.rules()), any_(any) {
    const Json* inner = member_of(&tool, "function");
    declaration_ = inner ? inner : &tool;
    parameters_ = member_of(declaration_, "parameters");
    if (!parameters_) parameters_ = member_of(declaration_, "input_schema");
    strict_ = strict || is_true(member_of(declaration_, "strict"));
  }

  // From the name to the last brace.
  Result<ExprId> function() {
    const Json* name = member_of(declaration_, "name");
    if (!name || !name->is_string() || !can_stand_bare(text_of(*name)))
      return error("a tool's name: expected one line of text without ':', ',', '<' and braces");
    Result<ExprId> body = all_parameters();
    if (!body.ok()) return std::move(body).failure().in("tool " + std::string(text_of(*name)));
    return any_.enclosed(cat(text_of(*name), "{"), body.value(), "}");
  }

 private:
  Result<ExprId> all_parameters() {
    if (!parameters_ || parameters_->is_null()) return rules_.literal("");
    SLIP_TRY_STATUS(check_depth(*parameters_));
    return add_schema(json_, *parameters_, *parameters_,
                      {.closed_objects = strict_, .lenient = !strict_},
                      [&](const JsonObject& schema) -> Result<ExprId> {
                        SLIP_TRY_STATUS(refuse_if_strict(schema));
                        return members(schema, 0);
                      });
  }

  Result<ExprId> value(const Json& schema, int depth) {
    if (!schema.is_object() || depth > kMaxToolDepth) return any_.value();
    const JsonObject& object = schema.get_object();
    SLIP_TRY_STATUS(refuse_if_strict(object));
    if (const Json* reference = member_of(&schema, "$ref"); reference && reference->is_string())
      return referred(text_of(*reference), depth);
    if (object.contains("enum") || object.contains("const")) {
      Result<JsonArray> values = listed_values(object, !strict_);
      if (!values.ok() && strict_) return std::move(values).failure();
      if (!values.ok()) return any_.value();
      std::vector<ExprId> parts;
      for (const Json& one : values.value()) parts.push_back(any_.literal(one));
      return rules_.choice(std::move(parts));
    }
    for (const char* keyword : {"anyOf", "oneOf"})
      if (const Json* list = member_of(&schema, keyword); list && list->is_array())
        return one_of(list->get_array(), depth);
    Result<TypeSet> types = schema_types(object);
    if (!types.ok() && strict_) return std::move(types).failure();
    if (!types.ok()) return any_.value();
    return of_types(types.value(), schema, depth);
  }

  Result<ExprId> of_types(const TypeSet& types, const Json& schema, int depth) {
    std::vector<ExprId> parts;
    if (types.string) parts.push_back(any_.text());
    if (types.array) {
      SLIP_TRY(const ExprId list, list_of(schema, depth));
      parts.push_back(list);
    }
    if (types.object) {
      SLIP_TRY(const ExprId map, map_of(schema, depth));
      parts.push_back(map);
    }
    // Numbers and words are spelt as in JSON, and so are their limits followed.
    JsonArray plain;
    if (types.null || is_true(member_of(&schema, "nullable"))) plain.emplace_back("null");
    if (types.boolean) plain.emplace_back("boolean");
    if (types.number) plain.emplace_back("number");
    if (types.integer && !types.number) plain.emplace_back("integer");
    if (!plain.empty()) {
      JsonObject scalar = schema.get_object();
      scalar["type"] = std::move(plain);
      scalar.erase("nullable");
      SLIP_TRY(const ExprId part, add_schema(json_, scalar, *parameters_,
                                             {.closed_objects = strict_, .lenient = !strict_}));
      parts.push_back(part);
    }
    return rules_.choice(std::move(parts));
  }

  Result<ExprId> one_of(const JsonArray& schemas, int depth) {
    std::vector<ExprId> parts;
    for (const Json& one : schemas) {
      SLIP_TRY(const ExprId part, value(one, depth + 1));
      parts.push_back(part);
    }
    return rules_.choice(std::move(parts));
  }

  // A rule of its own for every target, since schemas may refer to themselves.
  Result<ExprId> referred(std::string_view target, int depth) {
    if (const auto known = referred_.find(std::string(target)); known != referred_.end())
      return rules_.call(known->second);
    boost::system::error_code failure;
    const Json* schema =
        target.starts_with('#')
            ? parameters_->find_pointer({target.data() + 1, target.size() - 1}, failure)
            : nullptr;
    if (!schema && strict_) return error("$ref: \"", target, "\" is not in the schema");
    if (!schema) return any_.value();
    const RuleId rule = rules_.add_rule(cat("$ref ", target));
    referred_.emplace(target, rule);
    SLIP_TRY(const ExprId body, value(*schema, depth + 1));
    rules_.define(rule, body);
    return rules_.call(rule);
  }

  Result<ExprId> list_of(const Json& schema, int depth) {
    SLIP_TRY(const std::optional<int64_t> min, count_keyword(schema.get_object(), "minItems"));
    SLIP_TRY(const std::optional<int64_t> max, count_keyword(schema.get_object(), "maxItems"));
    const Json* items = member_of(&schema, "items");
    ExprId item = any_.value();
    if (items) {
      SLIP_TRY(item, value(*items, depth + 1));
    } else if (!min && !max) {
      return any_.list();
    }
    return any_.enclosed("[", any_.repeated(item, min.value_or(0), max.value_or(kUnbounded)), "]");
  }

  Result<ExprId> map_of(const Json& schema, int depth) {
    const Json* properties = member_of(&schema, "properties");
    if (!properties || !properties->is_object()) return any_.map();
    SLIP_TRY(const ExprId body, members(schema.get_object(), depth + 1));
    return any_.enclosed("{", body, "}");
  }

  // Members by key, each that is not required left out or not, with commas between those there are.
  // Those that the schema allows but does not name come last.
  Result<ExprId> members(const JsonObject& schema, int depth) {
    static const Json kAnything = true;
    const Json* properties = schema.if_contains("properties");
    const Json* others = other_parameters(schema, strict_);
    const Json& of_others = others ? *others : kAnything;
    std::map<std::string, const Json*> named;
    if (properties && properties->is_object())
      for (const auto& entry : properties->get_object()) named[entry.key()] = &entry.value();
    const std::set<std::string> required = required_names(schema);
    for (const std::string& name : required) {
      if (!named.try_emplace(name, &of_others).second || !strict_ || others) continue;
      return error("required: \"", name, "\" is not among the properties");
    }
    std::vector<std::pair<std::string, const Json*>> sorted(named.begin(), named.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return comes_before(a.first, b.first); });
    ExprId as_first = rules_.literal("");  // the rest, if nothing stands before it
    ExprId behind = as_first;              // and if something does
    if (others) {
      std::vector<std::string> names = {""};
      for (const auto& [name, of_value] : sorted) names.push_back(name);
      SLIP_TRY(const ExprId key, json_.other_name(names, kNameCharacters, kMaxOtherName, {}));
      SLIP_TRY(const ExprId content, value(of_others, depth + 1));
      const ExprId other = rules_.sequence({key, rules_.literal(":"), content});
      as_first = any_.repeated(other, 0, kUnbounded);
      behind = rules_.repeat(rules_.sequence({rules_.literal(","), other}), 0, kUnbounded);
    }
    for (auto member = sorted.rbegin(); member != sorted.rend(); ++member) {
      if (!can_stand_bare(member->first))
        return error("a parameter's name: expected one line of text without ':', ',', '<' and ",
                     "braces, found \"", member->first, "\"");
      SLIP_TRY(const ExprId content, value(*member->second, depth));
      const ExprId written = rules_.sequence({rules_.literal(member->first + ":"), content});
      const ExprId first = rules_.sequence({written, behind});
      const ExprId further = rules_.sequence({rules_.literal(","), written, behind});
      const bool must = required.contains(member->first);
      as_first = as_rule(must ? first : rules_.choice({first, as_first}));
      behind = as_rule(must ? further : rules_.choice({further, behind}));
    }
    return as_first;
  }

  // Shared by both ways to come to it, instead of doubled with every member.
  ExprId as_rule(ExprId body) {
    const RuleId rule = rules_.add_rule("the rest of the members");
    rules_.define(rule, body);
    return rules_.call(rule);
  }

  static std::set<std::string> required_names(const JsonObject& schema) {
    std::set<std::string> names;
    const Json* required = schema.if_contains("required");
    if (required && required->is_array())
      for (const Json& name : required->get_array())
        if (name.is_string()) names.emplace(text_of(name));
    return names;
  }

  Status refuse_if_strict(const JsonObject& schema) const {
    if (!strict_) return {};
    for (const char* keyword : {"pattern", "format", "minLength", "maxLength", "allOf",
                                "prefixItems", "uniqueItems", "minProperties", "maxProperties"})
      if (schema.contains(keyword))
        return error("\"", keyword, "\" cannot be enforced in this model's form of tool calls; ",
                     "leave it out or make the tool not strict");
    for (const char* alone : {"$ref", "anyOf", "oneOf"})
      for (const auto& entry : schema)
        if (schema.contains(alone) && entry.key() != alone &&
            keyword_use(json_view(entry.key())) == KeywordUse::followed)
          return error("\"", std::string(entry.key()), "\" beside \"", alone,
                       "\" cannot be enforced in this model's form of tool calls");
    for (const auto& entry : schema)
      if (keyword_use({entry.key().data(), entry.key().size()}) == KeywordUse::unsupported)
        return error("\"", std::string(entry.key()), "\" is not supported");
    return {};
  }

  JsonRules& json_;
  Rules& rules_;
  AnyValue& any_;
  const Json* declaration_;
  const Json* parameters_;
  bool strict_;
  std::map<std::string, RuleId> referred_;
};

}  // namespace

Result<ExprId> add_brace_calls(JsonRules& json, const OutputFormat& format, const JsonArray& tools,
                               bool parallel, bool strict) {
  Rules& rules = json.rules();
  AnyValue any(json, format);
  std::vector<ExprId> functions;
  for (const Json& tool : tools) {
    SLIP_TRY(const ExprId function, BraceTool(json, any, tool, strict).function());
    functions.push_back(function);
  }
  const ExprId call =
      rules.sequence({rules.tag(format.call_open), rules.literal("call:"),
                      rules.choice(std::move(functions)), rules.tag(format.call_close)});
  return parallel ? rules.repeat(call, 1, kUnbounded) : call;
}

}  // namespace slip
