#include "grammar/schema_keywords.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "grammar/characters.h"

namespace slip {
namespace {

constexpr std::string_view kFollowed[] = {
    "$ref",          "type",        "enum",
    "const",         "properties",  "required",
    "items",         "prefixItems", "additionalProperties",
    "minItems",      "maxItems",    "additionalItems",
    "anyOf",         "oneOf",       "allOf",
    "minLength",     "maxLength",   "pattern",
    "minimum",       "maximum",     "exclusiveMinimum",
    "format",        "nullable",    "exclusiveMaximum",
    "minProperties", "uniqueItems", "maxProperties",
};

constexpr std::string_view kAnnotations[] = {
    "$schema",      "$id",      "$comment",      "$defs",           "$anchor",
    "$vocabulary",  "id",       "definitions",   "title",           "description",
    "default",      "examples", "example",       "deprecated",      "readOnly",
    "writeOnly",    "name",     "strict",        "contentEncoding", "contentMediaType",
    "externalDocs", "xml",      "contentSchema", "discriminator",
};

constexpr std::string_view kUnsupported[] = {
    "not",
    "if",
    "then",
    "else",
    "multipleOf",
    "contains",
    "minContains",
    "maxContains",
    "propertyNames",
    "patternProperties",
    "dependencies",
    "dependentRequired",
    "$dynamicRef",
    "dependentSchemas",
    "$recursiveRef",
    "unevaluatedItems",
    "$dynamicAnchor",
    "unevaluatedProperties",
};

constexpr std::string_view kMoreSteps = "/...";

template <size_t N>
bool is_one_of(std::string_view keyword, const std::string_view (&list)[N]) {
  return std::find(std::begin(list), std::end(list), keyword) != std::end(list);
}

Status add_type(TypeSet& types, const Json& name) {
  if (!name.is_string()) return error("type: expected names of types");
  const std::string_view text = text_of(name);
  if (text == "null") {
    types.null = true;
  } else if (text == "boolean") {
    types.boolean = true;
  } else if (text == "integer") {
    types.integer = true;
  } else if (text == "number") {
    types.integer = types.number = true;
  } else if (text == "string") {
    types.string = true;
  } else if (text == "array") {
    types.array = true;
  } else if (text == "object") {
    types.object = true;
  } else {
    return error("type: there is no type \"", text, "\"");
  }
  return {};
}

TypeSet types_spoken_of(const JsonObject& schema) {
  const auto has_any = [&](std::initializer_list<std::string_view> keywords) {
    return std::any_of(keywords.begin(), keywords.end(),
                       [&](std::string_view keyword) { return schema.contains(keyword); });
  };
  TypeSet types;
  types.object =
      has_any({"properties", "required", "additionalProperties", "minProperties", "maxProperties"});
  types.array = has_any({"items", "prefixItems", "minItems", "maxItems", "uniqueItems"});
  types.string = has_any({"minLength", "maxLength", "pattern", "format"});
  types.number = types.integer =
      has_any({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"});
  return types.empty() ? TypeSet::all() : types;
}

}  // namespace

std::string below(const std::string& path, std::string_view step) {
  constexpr size_t kLongestPath = 500;
  if (path.ends_with(kMoreSteps)) return path;
  if (path.size() + step.size() > kLongestPath) return cat(path, kMoreSteps);
  return cat(path, "/", step);
}

Error at_path(Error failure, const std::string& path) {
  return std::move(failure).in("schema at #" + path);
}

std::string_view text_of(const Json& string) {
  return {string.get_string().data(), string.get_string().size()};
}

KeywordUse keyword_use(std::string_view keyword) {
  if (is_one_of(keyword, kFollowed)) return KeywordUse::followed;
  if (is_one_of(keyword, kAnnotations) || keyword.starts_with("x-")) return KeywordUse::annotation;
  if (is_one_of(keyword, kUnsupported)) return KeywordUse::unsupported;
  return KeywordUse::unknown;
}

bool TypeSet::contains(const Json& value) const {
  switch (value.kind()) {
    case boost::json::kind::null: return null;
    case boost::json::kind::bool_: return boolean;
    case boost::json::kind::int64:
    case boost::json::kind::uint64: return integer;
    case boost::json::kind::double_:
      return number || (integer && std::trunc(value.get_double()) == value.get_double());
    case boost::json::kind::string: return string;
    case boost::json::kind::array: return array;
    case boost::json::kind::object: return object;
  }
  unreachable("boost::json::kind");
}

Result<TypeSet> schema_types(const JsonObject& schema) {
  TypeSet types;
  const Json* named = schema.if_contains("type");
  if (!named) {
    types = types_spoken_of(schema);
  } else if (named->is_array()) {
    for (const Json& name : named->get_array()) SLIP_TRY_STATUS(add_type(types, name));
  } else {
    SLIP_TRY_STATUS(add_type(types, *named));
  }
  const Json* nullable = schema.if_contains("nullable");
  if (nullable && nullable->is_bool() && nullable->get_bool()) types.null = true;
  return types;
}

Result<JsonArray> listed_values(const JsonObject& schema, bool lenient) {
  constexpr size_t kMaxBytes = 100'000;
  JsonArray values;
  if (const Json* listed = schema.if_contains("enum")) {
    if (!listed->is_array()) return error("enum: expected an array");
    values = listed->get_array();
  }
  if (const Json* constant = schema.if_contains("const")) values = {*constant};
  for (const auto& [name, value] : schema) {
    const std::string_view keyword(name.data(), name.size());
    const bool fine = keyword == "enum" || keyword == "const" || keyword == "type" ||
                      keyword == "nullable" || keyword_use(keyword) != KeywordUse::followed;
    if (!fine && !lenient) return error(keyword, " beside enum or const is not supported");
  }
  SLIP_TRY(const TypeSet types, schema_types(schema));
  const bool typed = schema.contains("type");
  JsonArray fitting;
  size_t bytes = 0;
  for (const Json& value : values) {
    if (typed && !types.contains(value)) continue;
    fitting.push_back(value);
    bytes += compact_json(value).size();
  }
  if (bytes > kMaxBytes) return error("enum: more than ", kMaxBytes, " bytes of values");
  return fitting;
}

const Json* other_parameters(const JsonObject& schema, bool strict) {
  static const Json kAnything = true;
  if (const Json* others = schema.if_contains("additionalProperties"))
    return *others == Json(false) ? nullptr : others;
  return strict || schema.contains("properties") ? nullptr : &kAnything;
}

Result<std::optional<int64_t>> count_keyword(const JsonObject& schema, std::string_view keyword) {
  constexpr int64_t kLargest = 1'000'000'000;
  const Json* value = schema.if_contains(keyword);
  if (!value) return std::optional<int64_t>();
  if (!value->is_number()) return error(keyword, ": expected a number");
  const double number = value->to_number<double>();
  if (number < 0 || number != std::trunc(number) || number > kLargest)
    return error(keyword, ": expected a whole number from 0 to ", kLargest);
  return std::optional<int64_t>(int64_t(number));
}

}  // namespace slip
