// A plain validator of JSON against schemas, written apart from the grammar that it checks. Knows
// the keywords that the tests use.
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "base/json.h"
#include "tests/grammar/std_regex.h"
#include "text/utf8.h"

namespace slip {

class Validator {
 public:
  explicit Validator(const Json& root) : root_(root) {}

  bool fits(const Json& schema, const Json& value) const {
    if (schema.is_bool()) return schema.get_bool();
    const JsonObject& object = schema.get_object();
    for (const auto& [key, argument] : object)
      if (!keyword_fits(std::string_view(key.data(), key.size()), argument, object, value))
        return false;
    return true;
  }

 private:
  static bool is_integer(const Json& value) {
    return value.is_int64() || value.is_uint64() ||
           (value.is_double() && value.get_double() == std::trunc(value.get_double()));
  }

  static bool has_type(const Json& type, const Json& value) {
    return (type == "null" && value.is_null()) || (type == "boolean" && value.is_bool()) ||
           (type == "integer" && is_integer(value)) || (type == "number" && value.is_number()) ||
           (type == "string" && value.is_string()) || (type == "array" && value.is_array()) ||
           (type == "object" && value.is_object());
  }

  static size_t characters(const Json& value) {
    size_t count = 0;
    for (const char byte : value.get_string()) count += (uint8_t(byte) & 0xC0) != 0x80;
    return count;
  }

  bool object_fits(std::string_view key, const Json& argument, const JsonObject& schema,
                   const JsonObject& value) const {
    const Json* properties = schema.if_contains("properties");
    const auto listed = [&](std::string_view name) {
      return properties ? properties->get_object().if_contains(name) : nullptr;
    };
    if (key == "required") {
      for (const Json& name : argument.get_array())
        if (!value.contains(name.get_string())) return false;
      return true;
    }
    for (const auto& [name, member] : value) {
      const Json* own = listed({name.data(), name.size()});
      if (key == "properties" && own && !fits(*own, member)) return false;
      if (key == "additionalProperties" && !own && !fits(argument, member)) return false;
    }
    return true;
  }

  bool array_fits(std::string_view key, const Json& argument, const JsonObject& schema,
                  const JsonArray& value) const {
    if (key == "minItems") return value.size() >= argument.to_number<size_t>();
    if (key == "maxItems") return value.size() <= argument.to_number<size_t>();
    const Json* prefix = schema.if_contains("prefixItems");
    const size_t first = prefix ? prefix->get_array().size() : 0;
    for (size_t i = 0; i < value.size(); ++i) {
      if (key == "prefixItems" && i < first && !fits(argument.get_array()[i], value[i]))
        return false;
      if (key == "items" && i >= first && !fits(argument, value[i])) return false;
    }
    return true;
  }

  bool number_fits(std::string_view key, double argument, double value) const {
    if (key == "minimum") return value >= argument;
    if (key == "maximum") return value <= argument;
    if (key == "exclusiveMinimum") return value > argument;
    if (key == "exclusiveMaximum") return value < argument;
    return true;
  }

  bool keyword_fits(std::string_view key, const Json& argument, const JsonObject& schema,
                    const Json& value) const {
    if (key == "type") {
      if (argument.is_string()) return has_type(argument, value);
      for (const Json& type : argument.get_array())
        if (has_type(type, value)) return true;
      return false;
    }
    if (key == "enum") {
      for (const Json& one : argument.get_array())
        if (one == value) return true;
      return false;
    }
    if (key == "const") return argument == value;
    if (key == "$ref") {
      boost::system::error_code failure;
      return fits(*root_.find_pointer(argument.get_string().subview(1), failure), value);
    }
    if (key == "anyOf" || key == "allOf") {
      size_t fitting = 0;
      for (const Json& one : argument.get_array()) fitting += fits(one, value);
      return key == "anyOf" ? fitting > 0 : fitting == argument.get_array().size();
    }
    if (value.is_object()) return object_fits(key, argument, schema, value.get_object());
    if (value.is_array()) return array_fits(key, argument, schema, value.get_array());
    if (value.is_number() && argument.is_number())
      return number_fits(key, argument.to_number<double>(), value.to_number<double>());
    if (!value.is_string()) return true;
    if (key == "minLength") return characters(value) >= argument.to_number<size_t>();
    if (key == "maxLength") return characters(value) <= argument.to_number<size_t>();
    if (key == "pattern")
      return std::regex_search(std::string(value.get_string()),
                               std::regex(std::string(argument.get_string())));
    return true;
  }

  const Json& root_;
};

}  // namespace slip
