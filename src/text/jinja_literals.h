// Numbers and strings as Python writes them.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja_value.h"

namespace slip::jinja {

struct NumberLiteral {
  size_t length = 0;
  bool is_real = false;
  Int integer = 0;
  double real = 0;
  std::string error = "";  // empty: fine
};

// The number at the start of `text`, which begins with a digit.
NumberLiteral scan_number(std::string_view text, bool integer_only);

// What stands between the quotes, with \n, \x41, \u00e9 and so on resolved.
std::string unescape_string(std::string_view text, std::string& error);

}  // namespace slip::jinja
