// JSON: Boost.JSON values, parsed with limits and with errors that name the source.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slip {

using Json = boost::json::value;
using JsonObject = boost::json::object;
using JsonArray = boost::json::array;

// `source` (a path, "request body") starts the error message. Nesting deeper than 64 is refused.
Result<Json> parse_json(std::string_view text, const std::string& source);

// A member of an object; null if there is none, or no object.
inline const Json* member_of(const Json* value, std::string_view key) {
  const JsonObject* object = value ? value->if_object() : nullptr;
  return object ? object->if_contains(key) : nullptr;
}

// The text of a string; empty for everything else, and for null.
inline std::string_view text_or_empty(const Json* value) {
  const boost::json::string* text = value ? value->if_string() : nullptr;
  return text ? std::string_view(text->data(), text->size()) : std::string_view();
}

inline bool is_true(const Json* value) { return value && value->is_bool() && value->get_bool(); }

inline std::string_view json_view(const boost::json::string_view& text) {
  return {text.data(), text.size()};
}

// The type of a value in words, for error messages: "a string", "an object", ...
const char* describe_json_kind(const Json& value);

// One line, ", " and ": " as separators, non-ASCII kept, key order kept, numbers as Python prints
// them (3.0, 1e-07). This is what chat templates need and what `--json` prints.
std::string dump_json(const Json& value);

// The same over several lines; `indent` spaces per level.
std::string dump_json(const Json& value, int indent);

}  // namespace slip
