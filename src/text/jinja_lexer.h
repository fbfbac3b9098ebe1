// Template text -> tokens. Whitespace control is settled here: what the parser sees as data is
// exactly what will be printed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_value.h"

namespace slip::jinja {

enum class TokenType {
  data,
  print_begin,
  print_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  symbol,
  end,
};

struct Token {
  TokenType type;
  int line;
  std::string text = "";  // data, name, symbol; a string with its escapes resolved
  Int integer = 0;
  double real = 0;
};

// Throws Failure with the line.
std::vector<Token> tokenize(std::string_view source);

}  // namespace slip::jinja
