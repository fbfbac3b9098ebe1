#include "text/tokenizer_json.h"

#include <limits>

namespace slip {

const Json* find_field(const JsonObject& object, std::string_view key) {
  const Json* value = object.if_contains(key);
  return value && !value->is_null() ? value : nullptr;
}

Result<const JsonObject*> require_object(const Json& value, const char* what) {
  const JsonObject* object = value.if_object();
  if (!object) return error(what, " must be an object, but is ", describe_json_kind(value));
  return object;
}

Result<std::string_view> require_string(const JsonObject& object, const char* key) {
  const Json* value = find_field(object, key);
  if (!value) return error("\"", key, "\" is missing");
  if (!value->is_string())
    return error("\"", key, "\" must be a string, but is ", describe_json_kind(*value));
  return json_view(value->get_string());
}

Result<bool> read_flag(const JsonObject& object, const char* key, bool if_absent) {
  const Json* value = find_field(object, key);
  if (!value) return if_absent;
  if (!value->is_bool())
    return error("\"", key, "\" must be true or false, but is ", describe_json_kind(*value));
  return value->get_bool();
}

Result<int32_t> read_token_id(const Json& value) {
  // The parser gives int64 to whatever fits, so uint64 is too large by itself.
  if (!value.is_int64() && !value.is_uint64())
    return error("a token id must be an integer, but is ", describe_json_kind(value));
  if (value.is_uint64() || value.get_int64() < 0 ||
      value.get_int64() > std::numeric_limits<int32_t>::max())
    return error("a token id is outside 0 to 2^31-1");
  return int32_t(value.get_int64());
}

Result<std::string_view> read_type(const JsonObject& object) {
  return require_string(object, "type");
}

Result<std::string_view> read_literal_pattern(const JsonObject& object) {
  const Json* pattern = find_field(object, "pattern");
  if (!pattern) return error("\"pattern\" is missing");
  SLIP_TRY(const JsonObject* choice, require_object(*pattern, "\"pattern\""));
  if (const Json* regex = find_field(*choice, "Regex"); regex && regex->is_string())
    return error("this regular expression is not implemented: ", json_view(regex->get_string()));
  SLIP_TRY(const std::string_view literal, require_string(*choice, "String"));
  if (literal.empty()) return error("\"pattern\" is empty");
  return literal;
}

}  // namespace slip
