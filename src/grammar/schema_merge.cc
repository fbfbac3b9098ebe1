#include "grammar/schema_merge.h"

#include <algorithm>
#include <unordered_set>

#include "grammar/schema_keywords.h"

namespace slip {
namespace {

constexpr size_t kTypes = 7;

Json both(const Json& a, const Json& b) {
  if (a == b) return a;
  if (a.is_bool()) return a.get_bool() ? b : a;
  if (b.is_bool()) return b.get_bool() ? a : b;
  return JsonObject{{"allOf", JsonArray{a, b}}};
}

// The values, to look others up among: what is merged may be long lists.
std::unordered_set<Json> set_of(const JsonArray& list) { return {list.begin(), list.end()}; }

JsonArray as_list(const Json& value) {
  return value.is_array() ? value.get_array() : JsonArray{value};
}

bool contains(const JsonArray& list, const Json& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// "number" contains "integer".
Result<Json> common_types(const Json& a, const Json& b) {
  const JsonArray left = as_list(a);
  const JsonArray right = as_list(b);
  if (std::max(left.size(), right.size()) > kTypes)
    return error("type: there are only ", kTypes, " types");
  JsonArray common;
  const auto add = [&common](const Json& type) {
    if (!contains(common, type)) common.push_back(type);
  };
  for (const Json& type : left) {
    if (contains(right, type)) add(type);
    if (type == "integer" && contains(right, "number")) add(type);
    if (type == "number" && contains(right, "integer")) add("integer");
  }
  return Json(std::move(common));
}

// What the schema says about a property that it may not list.
Json property_of(const JsonObject& schema, std::string_view name) {
  const Json* properties = schema.if_contains("properties");
  if (properties && properties->is_object())
    if (const Json* listed = properties->get_object().if_contains(name)) return *listed;
  const Json* others = schema.if_contains("additionalProperties");
  return others ? *others : Json(true);
}

void merge_properties(const JsonObject& a, const JsonObject& b, JsonObject& merged) {
  JsonObject properties;
  for (const JsonObject* from : {&a, &b}) {
    const Json* listed = from->if_contains("properties");
    if (!listed || !listed->is_object()) continue;
    for (const auto& [name, schema] : listed->get_object())
      if (!properties.contains(name))
        properties[name] = both(property_of(a, name), property_of(b, name));
  }
  if (!properties.empty()) merged["properties"] = std::move(properties);
  const Json* left = a.if_contains("additionalProperties");
  const Json* right = b.if_contains("additionalProperties");
  if (left || right)
    merged["additionalProperties"] = both(left ? *left : Json(true), right ? *right : Json(true));
}

// Whether of two bounds of this name the larger one is the stricter.
enum class Stricter { larger, smaller, neither };
Stricter stricter_bound(std::string_view keyword) {
  for (const char* name : {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
    if (keyword == name) return Stricter::larger;
  for (const char* name : {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
    if (keyword == name) return Stricter::smaller;
  return Stricter::neither;
}

Result<Json> merge_keyword(std::string_view keyword, const Json& a, const Json& b) {
  if (a == b) return a;
  if (keyword == "type") return common_types(a, b);
  if (keyword == "items") return both(a, b);
  if (keyword == "uniqueItems") return Json(a == Json(true) || b == Json(true));
  if (keyword == "nullable") return Json(a == Json(true) && b == Json(true));
  if (keyword == "required" && a.is_array() && b.is_array()) {
    JsonArray names = a.get_array();
    const std::unordered_set<Json> known = set_of(names);
    for (const Json& name : b.get_array())
      if (!known.contains(name)) names.push_back(name);
    return Json(std::move(names));
  }
  if (keyword == "enum" && a.is_array() && b.is_array()) {
    JsonArray values;
    const std::unordered_set<Json> wanted = set_of(b.get_array());
    for (const Json& value : a.get_array())
      if (wanted.contains(value)) values.push_back(value);
    return Json(std::move(values));
  }
  if (keyword == "allOf" && a.is_array() && b.is_array()) {
    JsonArray all = a.get_array();
    all.insert(all.end(), b.get_array().begin(), b.get_array().end());
    return Json(std::move(all));
  }
  const Stricter stricter = stricter_bound(keyword);
  if (stricter != Stricter::neither && a.is_number() && b.is_number()) {
    const bool a_is_larger = a.to_number<double>() > b.to_number<double>();
    return a_is_larger == (stricter == Stricter::larger) ? a : b;
  }
  return error(keyword, ": two different ones that must both hold are not supported");
}

// A constant is a list of one value, so that it can meet another list.
JsonObject with_enum(JsonObject schema) {
  if (const Json* constant = schema.if_contains("const")) {
    JsonArray values = {*constant};
    if (const Json* listed = schema.if_contains("enum"); listed && listed->is_array())
      if (!contains(listed->get_array(), values[0])) values.clear();
    schema["enum"] = std::move(values);
    schema.erase("const");
  }
  return schema;
}

}  // namespace

Result<JsonObject> merge_schemas(const JsonObject& first, const JsonObject& second) {
  const JsonObject a = with_enum(first);
  const JsonObject b = with_enum(second);
  JsonObject merged;
  merge_properties(a, b, merged);
  for (const JsonObject* from : {&a, &b})
    for (const auto& [name, value] : *from) {
      const std::string_view keyword(name.data(), name.size());
      if (merged.contains(name) || keyword_use(keyword) == KeywordUse::annotation) continue;
      const Json* left = a.if_contains(name);
      const Json* right = b.if_contains(name);
      if (left && right) {
        SLIP_TRY(merged[name], merge_keyword(keyword, *left, *right));
      } else {
        merged[name] = value;
      }
    }
  return merged;
}

}  // namespace slip
