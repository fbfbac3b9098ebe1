#include "text/jinja_numbers.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "text/jinja_text.h"

namespace slip::jinja {
namespace {

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

// Underscores may stand between two digits.
std::optional<std::string> drop_underscores(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const bool between = i > 0 && i + 1 < text.size() && digit_value(text[i - 1]) < 36 &&
                         digit_value(text[i + 1]) < 36;
    if (!between) return std::nullopt;
  }
  return out;
}

int prefix_base(std::string_view text) {
  if (text.size() < 3 || text[0] != '0') return 0;
  switch (text[1] | 0x20) {
    case 'x': return 16;
    case 'o': return 8;
    case 'b': return 2;
    default: return 0;
  }
}

}  // namespace

std::optional<Int> parse_int(std::string_view text, Int base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  text = strip(text, std::nullopt, Side::both);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const int implied = prefix_base(text);
  if (implied && (base == 0 || base == implied)) {
    text.remove_prefix(2);
    base = implied;
  }
  if (base == 0) base = 10;
  const auto digits = drop_underscores(text);
  if (!digits || digits->empty()) return std::nullopt;
  Int value = 0;
  for (const char c : *digits) {
    const Int digit = digit_value(c);
    if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
        __builtin_add_overflow(value, digit, &value))
      return std::nullopt;
  }
  return negative ? -value : value;
}

std::optional<double> parse_float(std::string_view text) {
  text = strip(text, std::nullopt, Side::both);
  const auto plain = drop_underscores(text);
  if (!plain || plain->empty()) return std::nullopt;
  std::string word = to_lower(*plain);
  if (word[0] == '+' || word[0] == '-') word.erase(0, 1);
  const bool is_word = word == "inf" || word == "infinity" || word == "nan";
  // strtod would also take hexadecimal numbers.
  if (!is_word && word.find_first_not_of("0123456789.e+-") != std::string::npos)
    return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(plain->c_str(), &end);
  if (end != plain->c_str() + plain->size()) return std::nullopt;
  return value;
}

double round_decimal(double value, int digits) {
  if (!std::isfinite(value)) return value;
  if (digits < 0) {
    const double scale = std::pow(10.0, -digits);
    return std::nearbyint(value / scale) * scale;
  }
  std::array<char, 700> buffer;  // 309 digits, a point, 300 decimals
  std::snprintf(buffer.data(), buffer.size(), "%.*f", digits, value);
  return std::strtod(buffer.data(), nullptr);
}

}  // namespace slip::jinja
