#include <algorithm>

#include "grammar/schema_compiler.h"

namespace slip {
namespace {

constexpr size_t kMaxProperties = 1000;

}  // namespace

Result<std::vector<SchemaCompiler::Property>> SchemaCompiler::read_properties(
    const JsonObject& schema, const std::string& path) {
  std::vector<Property> properties;
  const auto add = [&](std::string_view name, const Json* value, bool is_required) -> Status {
    if (properties.size() == kMaxProperties)
      return at_path(error("properties: more than ", kMaxProperties), path);
    properties.push_back({std::string(name), value, is_required});
    return {};
  };
  if (const Json* listed = schema.if_contains("properties")) {
    if (!listed->is_object()) return at_path(error("properties: expected an object"), path);
    for (const auto& [name, value] : listed->get_object())
      SLIP_TRY_STATUS(add(json_view(name), &value, false));
  }
  const Json* required = schema.if_contains("required");
  // Draft 3 has a flag here, which says nothing about the object itself.
  if (!required || required->is_bool()) return properties;
  if (!required->is_array()) return at_path(error("required: expected an array"), path);
  static const Json kAnything = true;
  for (const Json& name : required->get_array()) {
    if (!name.is_string()) return at_path(error("required: expected names"), path);
    const auto known = std::find_if(properties.begin(), properties.end(),
                                    [&](const Property& one) { return one.name == text_of(name); });
    if (known != properties.end()) {
      known->required = true;
      continue;
    }
    const Json* others = schema.if_contains("additionalProperties");
    if (!others && options_.closed_objects && !options_.lenient)
      return at_path(error("required: \"", text_of(name), "\" is not among the properties"), path);
    SLIP_TRY_STATUS(add(text_of(name), others ? others : &kAnything, true));
  }
  return properties;
}

// A member that is not among the properties. `exists`: whether there may be any.
Result<ExprId> SchemaCompiler::other_member(const JsonObject& schema,
                                            const std::vector<Property>& properties, bool& exists,
                                            const std::string& path) {
  static const Json kAnything = true;
  const Json* others = schema.if_contains("additionalProperties");
  exists = others ? *others != Json(false) : !options_.closed_objects;
  if (!exists) return rules_.choice({});
  std::vector<std::string> names;
  names.reserve(properties.size());
  for (const Property& property : properties) names.push_back(property.name);
  SLIP_TRY(const ExprId value,
           value_of(others ? *others : kAnything, below(path, "additionalProperties")));
  if (names.empty()) return json_.member(json_.string(), value);
  Result<ExprId> key = json_.other_key(names);
  if (!key.ok()) return at_path(std::move(key).failure(), path);
  return json_.member(key.value(), value);
}

Status SchemaCompiler::check_property_counts(const JsonObject& schema,
                                             const std::vector<Property>& properties,
                                             bool has_others, const std::string& path) const {
  if (options_.lenient) return {};
  const auto required = std::count_if(properties.begin(), properties.end(),
                                      [](const Property& one) { return one.required; });
  Result<std::optional<int64_t>> min = count_keyword(schema, "minProperties");
  if (!min.ok()) return at_path(std::move(min).failure(), path);
  Result<std::optional<int64_t>> max = count_keyword(schema, "maxProperties");
  if (!max.ok()) return at_path(std::move(max).failure(), path);
  if (min.value().value_or(0) > int64_t(required))
    return at_path(error("minProperties beyond the required ones is not supported"), path);
  if (max.value() && (has_others || *max.value() < int64_t(properties.size())))
    return at_path(error("maxProperties below the number of properties is not supported"), path);
  return {};
}

// Two rules per property say what may follow once it has been written or left out: with nothing
// before it, or with something that asks for a comma. Each ends by going on to the next, down to
// the closing brace, so that the size is that of the schema and no frame is kept.
Result<ExprId> SchemaCompiler::compile_object(const JsonObject& schema, const std::string& path) {
  SLIP_TRY(const std::vector<Property> properties, read_properties(schema, path));
  bool has_others = false;
  SLIP_TRY(const ExprId other, other_member(schema, properties, has_others, path));
  SLIP_TRY_STATUS(check_property_counts(schema, properties, has_others, path));

  const ExprId comma = rules_.sequence({rules_.literal(","), json_.space()});
  const ExprId close = rules_.sequence({json_.space(), rules_.literal("}")});
  ExprId first = rules_.literal("}");  // what may follow if nothing has been written yet
  ExprId after = close;                // and if something has
  if (has_others) {
    after = rules_.sequence({rules_.repeat(rules_.sequence({comma, other}), 0, kUnbounded), close});
    first = rules_.choice({first, rules_.sequence({other, after})});
  }
  for (size_t i = properties.size(); i-- > 0;) {
    const Property& property = properties[i];
    const std::string member_path = below(path, "properties/" + property.name);
    SLIP_TRY(const ExprId value, value_of(*property.schema, member_path));
    const ExprId member = json_.member(property.name, value);
    const RuleId rest = rules_.add_rule("what follows " + member_path);
    rules_.define(rest, after);
    const ExprId here = rules_.sequence({member, rules_.call(rest)});
    const ExprId with_comma = rules_.sequence({comma, here});
    if (property.required) {
      first = here;
      after = with_comma;
      continue;
    }
    first = rules_.choice({here, first});
    after = rules_.choice({with_comma, rules_.call(rest)});
  }
  return rules_.sequence({rules_.literal("{"), json_.space(), first});
}

}  // namespace slip
