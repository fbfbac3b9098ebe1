#include "grammar/schema.h"

#include "grammar/characters.h"
#include "grammar/program.h"
#include "grammar/schema_compiler.h"
#include "grammar/schema_merge.h"

namespace slip {
namespace {

constexpr int kMaxSchemaDepth = 100;
constexpr size_t kMaxSchemas = 5000;
constexpr size_t kMaxAlternatives = 200;

// Whether a value has more levels; looks no deeper than that.
bool is_deeper_than(const Json& value, int levels) {
  if (const JsonArray* array = value.if_array())
    for (const Json& item : *array)
      if (levels == 0 || is_deeper_than(item, levels - 1)) return true;
  if (const JsonObject* object = value.if_object())
    for (const auto& [key, member] : *object)
      if (levels == 0 || is_deeper_than(member, levels - 1)) return true;
  return false;
}

bool only_annotations_beside(const JsonObject& schema, std::string_view keyword) {
  for (const auto& [name, value] : schema)
    if (std::string_view(name.data(), name.size()) != keyword &&
        keyword_use({name.data(), name.size()}) != KeywordUse::annotation)
      return false;
  return true;
}

// What the schema says besides the keyword, annotations left out.
JsonObject without(const JsonObject& schema, std::string_view keyword) {
  JsonObject rest;
  for (const auto& [name, value] : schema)
    if (json_view(name) != keyword && keyword_use(json_view(name)) != KeywordUse::annotation)
      rest.emplace(name, value);
  return rest;
}

}  // namespace

Result<ExprId> SchemaCompiler::value_of(const Json& schema, const std::string& path) {
  if (schema.is_bool() && schema.get_bool()) return any_value();
  if (schema.is_object() && only_annotations_beside(schema.get_object(), "")) return any_value();
  if (const auto known = rule_of_.find(&schema); known != rule_of_.end())
    return rules_.call(known->second);
  if (rule_of_.size() >= kMaxSchemas)
    return error("the schema has more than ", kMaxSchemas, " parts");
  SLIP_TRY_STATUS(check_expressions(rules_));
  if (depth_ >= kMaxSchemaDepth)
    return at_path(error("schemas nest deeper than ", kMaxSchemaDepth, " levels"), path);
  const RuleId rule = rules_.add_rule("the schema at #" + path);
  rule_of_.emplace(&schema, rule);
  ++depth_;
  SLIP_TRY(const ExprId body, compile(schema, path));
  --depth_;
  rules_.define(rule, body);
  return rules_.call(rule);
}

Result<ExprId> SchemaCompiler::any_value() {
  if (write_) return (*write_)(JsonObject());
  return json_.value();
}

Result<ExprId> SchemaCompiler::compile(const Json& schema, const std::string& path) {
  if (schema.is_bool()) return rules_.choice({});
  if (!schema.is_object())
    return at_path(error("expected a schema, found ", describe_json_kind(schema)), path);
  return compile_object_schema(schema.get_object(), path);
}

Result<ExprId> SchemaCompiler::compile_object_schema(const JsonObject& schema,
                                                     const std::string& path) {
  SLIP_TRY_STATUS(check_keywords(schema, path));
  if (schema.contains("$ref")) return compile_reference(schema, path);
  if (schema.contains("allOf")) return compile_all_of(schema, path);
  if (schema.contains("anyOf")) return compile_any_of(schema, "anyOf", path);
  // That no second alternative fits is left to the alternatives.
  if (schema.contains("oneOf")) return compile_any_of(schema, "oneOf", path);
  if (write_) return (*write_)(schema);
  Result<TypeSet> types = schema_types(schema);
  if (!types.ok()) return at_path(std::move(types).failure(), path);
  if (schema.contains("enum") || schema.contains("const")) return compile_enum(schema, path);
  return compile_types(schema, types.value(), path);
}

Status SchemaCompiler::check_keywords(const JsonObject& schema, const std::string& path) const {
  if (options_.lenient) return {};
  for (const auto& [name, value] : schema) {
    const std::string_view keyword(name.data(), name.size());
    const KeywordUse use = keyword_use(keyword);
    if (use == KeywordUse::unsupported)
      return at_path(error("the keyword \"", keyword, "\" is not supported"), path);
    if (use == KeywordUse::unknown && options_.closed_objects)
      return at_path(error("unknown keyword \"", keyword, "\""), path);
    if (keyword == "uniqueItems" && value != Json(false))
      return at_path(error("the keyword \"uniqueItems\" is not supported"), path);
  }
  return {};
}

Result<const Json*> SchemaCompiler::resolve(const Json& reference, const std::string& path) const {
  if (!reference.is_string()) return at_path(error("$ref: expected a string"), path);
  const std::string_view text = text_of(reference);
  if (!text.starts_with('#'))
    return at_path(
        error("$ref: only references within the schema (#/...) are supported, not \"", text, "\""),
        path);
  boost::system::error_code failure;
  const Json* target = root_.find_pointer({text.data() + 1, text.size() - 1}, failure);
  if (!target || failure) return at_path(error("$ref: there is nothing at \"", text, "\""), path);
  return target;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): moved from, two templates further down
Result<const Json*> SchemaCompiler::keep(Json schema) {
  std::string text = compact_json(schema);
  SLIP_TRY_STATUS(json_.count_copied(text.size()));
  return &made_.try_emplace(std::move(text), std::move(schema)).first->second;
}

Result<ExprId> SchemaCompiler::compile_reference(const JsonObject& schema,
                                                 const std::string& path) {
  SLIP_TRY(const Json* target, resolve(schema.at("$ref"), path));
  if (only_annotations_beside(schema, "$ref")) return value_of(*target, path);
  JsonArray all = {*target, without(schema, "$ref")};
  SLIP_TRY(const Json* made, keep(JsonObject{{"allOf", std::move(all)}}));
  return value_of(*made, path);
}

Result<ExprId> SchemaCompiler::compile_all_of(const JsonObject& schema, const std::string& path) {
  const Json& list = schema.at("allOf");
  if (!list.is_array()) return at_path(error("allOf: expected an array"), path);
  JsonObject merged = without(schema, "allOf");
  for (const Json& one : list.get_array()) {
    const Json* part = &one;
    for (int hops = 0; part->is_object() && part->get_object().contains("$ref"); ++hops) {
      const JsonObject& object = part->get_object();
      if (hops > kMaxSchemaDepth) return at_path(error("$ref: references form a ring"), path);
      SLIP_TRY(const Json* target, resolve(object.at("$ref"), path));
      part = target;
      if (!only_annotations_beside(object, "$ref")) {
        SLIP_TRY(part, keep(JsonObject{{"allOf", JsonArray{*target, without(object, "$ref")}}}));
      }
    }
    if (part->is_bool() && part->get_bool()) continue;
    if (part->is_bool()) return rules_.choice({});
    if (!part->is_object()) return at_path(error("allOf: expected schemas"), path);
    Result<JsonObject> both = merge_schemas(merged, part->get_object());
    if (!both.ok()) return at_path(std::move(both).failure(), path);
    merged = std::move(both).value();
    SLIP_TRY_STATUS(json_.count_copied(compact_json(merged).size()));
  }
  if (merged.empty()) return any_value();
  SLIP_TRY(const Json* made, keep(std::move(merged)));
  return value_of(*made, path);
}

Result<ExprId> SchemaCompiler::compile_any_of(const JsonObject& schema, const std::string& keyword,
                                              const std::string& path) {
  const Json& list = schema.at(keyword);
  if (!list.is_array() || list.get_array().empty())
    return at_path(error(keyword, ": expected an array of schemas"), path);
  if (list.get_array().size() > kMaxAlternatives)
    return at_path(error(keyword, ": more than ", kMaxAlternatives, " alternatives"), path);
  const bool alone = only_annotations_beside(schema, keyword);
  const JsonObject rest = without(schema, keyword);
  std::vector<ExprId> ways;
  for (size_t i = 0; i < list.get_array().size(); ++i) {
    const Json& way = list.get_array()[i];
    const Json* merged = &way;
    if (!alone) {
      SLIP_TRY(merged, keep(JsonObject{{"allOf", JsonArray{rest, way}}}));
    }
    SLIP_TRY(const ExprId one, value_of(*merged, below(path, cat(keyword, "/", i))));
    ways.push_back(one);
  }
  return rules_.choice(std::move(ways));
}

Result<ExprId> SchemaCompiler::compile_enum(const JsonObject& schema, const std::string& path) {
  Result<JsonArray> values = listed_values(schema, options_.lenient);
  if (!values.ok()) return at_path(std::move(values).failure(), path);
  std::vector<std::string> texts;
  for (const Json& value : values.value()) texts.push_back(compact_json(value));
  return texts.empty() ? rules_.choice({}) : rules_.literals(std::move(texts));
}

Result<ExprId> SchemaCompiler::compile_types(const JsonObject& schema, const TypeSet& types,
                                             const std::string& path) {
  std::vector<ExprId> ways;
  const auto add = [&](Result<ExprId> way) -> Status {
    if (!way.ok()) return std::move(way).failure();
    ways.push_back(way.value());
    return {};
  };
  if (types.object) SLIP_TRY_STATUS(add(compile_object(schema, path)));
  if (types.array) SLIP_TRY_STATUS(add(compile_array(schema, path)));
  if (types.string) SLIP_TRY_STATUS(add(compile_string(schema, path)));
  if (types.number || types.integer)
    SLIP_TRY_STATUS(add(compile_number(schema, !types.number, path)));
  if (types.boolean) ways.push_back(json_.boolean());
  if (types.null) ways.push_back(rules_.literal("null"));
  return rules_.choice(std::move(ways));
}

Status check_depth(const Json& schema) {
  if (!is_deeper_than(schema, 2 * kMaxSchemaDepth)) return {};
  return error("the schema nests deeper than ", 2 * kMaxSchemaDepth, " levels of JSON");
}

Status check_expressions(const Rules& rules) {
  constexpr size_t kMost = 2 * kMaxInstructions;  // over all schemas of one constraint
  if (rules.expr_count() <= kMost) return {};
  return error("the schema needs more than ", kMost, " expressions; make it smaller");
}

Result<ExprId> add_schema(JsonRules& json, const Json& schema, const Json& root,
                          const SchemaOptions& options) {
  return SchemaCompiler(json, root, options).value_of(schema, "");
}

Result<ExprId> add_schema(JsonRules& json, const Json& schema, const Json& root,
                          const SchemaOptions& options, SchemaWriter write) {
  return SchemaCompiler(json, root, options, &write).value_of(schema, "");
}

}  // namespace slip
