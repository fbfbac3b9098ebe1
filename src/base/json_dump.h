// The ways of printing JSON that Python's json.dumps offers, for chat templates; everything else
// uses dump_json() of base/json.h.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace slip {

struct JsonStyle {
  std::string indent = "";            // per level, when multiline
  bool multiline = false;             // Python: indent is not None
  std::string item_separator = ", ";  // between items; a newline follows it when multiline
  std::string key_separator = ": ";
  bool ascii_only = false;  // escapes everything else as \uXXXX
  bool sort_keys = false;
};

std::string dump_json(const Json& value, const JsonStyle& style);

// Appends `text` as a JSON string without the quotes around it.
void append_json_escaped(std::string& out, std::string_view text, bool ascii_only = false);

// The same with its quotes.
void append_json_quoted(std::string& out, std::string_view text);
std::string json_quoted(std::string_view text);

// Python's repr of a float: the shortest digits that read back equal, 3.0, 1e-07, 1e+16, inf, nan.
std::string format_double(double value);

}  // namespace slip
