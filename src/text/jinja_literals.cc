#include "text/jinja_literals.h"

#include <cstdint>
#include <cstdlib>

#include "base/text.h"
#include "text/jinja_text.h"
#include "text/utf8.h"

namespace slip::jinja {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

// Digits of `base` with single underscores between them; returns their length.
size_t scan_digits(std::string_view text, int base) {
  size_t at = 0;
  while (at < text.size()) {
    if (hex_digit(text[at]) < base) {
      ++at;
    } else if (text[at] == '_' && at + 1 < text.size() && hex_digit(text[at + 1]) < base) {
      at += 2;
    } else {
      break;
    }
  }
  return at;
}

std::string without_underscores(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != '_') out += c;
  return out;
}

NumberLiteral finish_integer(std::string_view digits, int base, size_t length) {
  NumberLiteral number{.length = length};
  for (const char c : digits) {
    if (c == '_') continue;
    if (__builtin_mul_overflow(number.integer, Int{base}, &number.integer) ||
        __builtin_add_overflow(number.integer, Int{hex_digit(c)}, &number.integer)) {
      number.error = "integer too large";
      return number;
    }
  }
  return number;
}

struct Escape {
  size_t length = 0;  // after the backslash; 0: not an escape, the backslash stays
  uint32_t code = 0;
  bool is_character = true;  // false: prints nothing
};

Escape scan_hex_escape(std::string_view text, size_t digits) {
  Escape escape{.length = digits + 1};
  if (text.size() < digits + 1) return {};
  for (size_t i = 1; i <= digits; ++i) {
    if (hex_digit(text[i]) >= 16) return {};
    escape.code = escape.code << 4 | static_cast<uint32_t>(hex_digit(text[i]));
  }
  return escape;
}

Escape scan_escape(std::string_view text) {
  switch (text[0]) {
    case '\n': return {.length = 1, .is_character = false};
    case '\\':
    case '\'':
    case '"': return {.length = 1, .code = static_cast<uint32_t>(text[0])};
    case 'a': return {.length = 1, .code = '\a'};
    case 'b': return {.length = 1, .code = '\b'};
    case 'f': return {.length = 1, .code = '\f'};
    case 'n': return {.length = 1, .code = '\n'};
    case 'r': return {.length = 1, .code = '\r'};
    case 't': return {.length = 1, .code = '\t'};
    case 'v': return {.length = 1, .code = '\v'};
    case 'x': return scan_hex_escape(text, 2);
    case 'u': return scan_hex_escape(text, 4);
    case 'U': return scan_hex_escape(text, 8);
    default: break;
  }
  Escape octal;
  while (octal.length < 3 && octal.length < text.size() && hex_digit(text[octal.length]) < 8)
    octal.code = octal.code << 3 | static_cast<uint32_t>(hex_digit(text[octal.length++]));
  return octal;
}

}  // namespace

NumberLiteral scan_number(std::string_view text, bool integer_only) {
  if (text.size() > 2 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    const int base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    // "0x_ff": one underscore may follow the mark.
    const size_t skip = text[2] == '_' ? 3 : 2;
    const size_t digits = base ? scan_digits(text.substr(skip), base) : 0;
    if (digits) return finish_integer(text.substr(skip, digits), base, skip + digits);
  }
  const size_t whole = scan_digits(text, 10);
  size_t end = whole;
  if (!integer_only) {
    if (end < text.size() && text[end] == '.') {
      const size_t fraction = scan_digits(text.substr(end + 1), 10);
      if (fraction && text[end + 1] != '_') end += 1 + fraction;
    }
    if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
      size_t digits = end + 1;
      if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
      const size_t exponent = scan_digits(text.substr(digits), 10);
      if (exponent && text[digits] != '_') end = digits + exponent;
    }
  }
  if (end == whole) {
    NumberLiteral number = finish_integer(text.substr(0, whole), 10, whole);
    if (text[0] == '0' && number.integer != 0) number.error = "leading zeros in an integer";
    return number;
  }
  NumberLiteral number{.length = end, .is_real = true};
  number.real = std::strtod(without_underscores(text.substr(0, end)).c_str(), nullptr);
  return number;
}

std::string unescape_string(std::string_view text, std::string& error) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const Escape escape = scan_escape(text.substr(i + 1));
    const char mark = text[i + 1];
    if (escape.length == 0 && (mark == 'x' || mark == 'u' || mark == 'U' || mark == 'N')) {
      error = cat("unsupported or truncated escape \\", mark, " in a string");
      return out;
    }
    if (escape.code > 0x10FFFF) {
      error = "illegal Unicode character in a string";
      return out;
    }
    if (escape.length == 0) {
      out += '\\';
    } else if (escape.is_character) {
      append_utf8(escape.code, out);
    }
    i += escape.length;
  }
  return out;
}

}  // namespace slip::jinja
