// '%s' % x and '{}'.format(x).
#include <algorithm>
#include <array>
#include <cstdio>

#include "text/jinja_builtins.h"
#include "text/jinja_numbers.h"
#include "text/jinja_text.h"

namespace slip::jinja {
namespace {

// Wider fields and longer fractions than these serve nobody.
constexpr int kMaxWidth = 1000;
constexpr int kMaxPrecision = 100;

struct Field {
  char type = '\0';   // s r d f F e E g G x X o; none: as str() prints it
  char align = '\0';  // < > ^; none: by type
  std::string fill = " ";
  bool zeros = false;
  bool plus = false;
  int width = 0;
  int precision = -1;
};

int take_number(std::string_view& spec, int limit) {
  int number = 0;
  while (!spec.empty() && spec[0] >= '0' && spec[0] <= '9') {
    number = number * 10 + (spec[0] - '0');
    if (number > limit) fail("format: a number above ", limit, " is not supported");
    spec.remove_prefix(1);
  }
  return number;
}

bool take(std::string_view& spec, char c) {
  if (!spec.starts_with(c)) return false;
  spec.remove_prefix(1);
  return true;
}

std::string print_integer(Int value, int base, bool upper) {
  if (base == 10) return format_int(value);
  const bool negative = value < 0;
  std::string reversed;
  do {
    const int digit = static_cast<int>(value % base);
    reversed += (upper ? "0123456789ABCDEF" : "0123456789abcdef")[negative ? -digit : digit];
    value /= base;
  } while (value != 0);
  if (negative) reversed += '-';
  return {reversed.rbegin(), reversed.rend()};
}

std::string print_real(double value, const Field& field) {
  const std::array<char, 5> pattern = {'%', '.', '*', field.type, '\0'};
  std::array<char, 512> buffer;  // 309 digits, a point, kMaxPrecision decimals
  const int precision = field.precision < 0 ? 6 : field.precision;
  std::snprintf(buffer.data(), buffer.size(), pattern.data(), precision, value);
  return buffer.data();
}

std::string print_number(const Value& value, const Field& field) {
  require_defined(value);
  const auto number = as_number(value);
  if (!number) fail("%", field.type, " format: a real number is required, not ", type_name(value));
  const bool integral = std::string_view("dxXo").find(field.type) != std::string_view::npos;
  if (!integral) return print_real(*number, field);
  const auto integer = as_int(value);
  if (!integer && !(*number > -0x1p126 && *number < 0x1p126))
    fail("cannot convert float to integer");
  const int base = field.type == 'd' ? 10 : field.type == 'o' ? 8 : 16;
  return print_integer(integer ? *integer : static_cast<Int>(*number), base, field.type == 'X');
}

std::string pad(const std::string& text, const Field& field, bool is_number) {
  const auto length = static_cast<int>(std::min<size_t>(count_characters(text), kMaxWidth));
  const int missing = std::max(field.width - length, 0);
  const auto repeat = [&](int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += field.fill;
    return out;
  };
  if (field.zeros && is_number && !field.align) {
    const size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
    return text.substr(0, sign) + std::string(static_cast<size_t>(missing), '0') +
           text.substr(sign);
  }
  const char align = field.align ? field.align : is_number ? '>' : '<';
  const int before = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  return repeat(before) + text + repeat(missing - before);
}

std::string print_field(Heap& heap, const Value& value, const Field& field, bool numbers_right) {
  const bool is_text = field.type == 's' || field.type == 'r' || field.type == '\0';
  std::string text;
  if (!is_text) {
    text = print_number(value, field);
    if (field.plus && text[0] != '-') text.insert(0, "+");
  } else {
    text = field.type == 'r' ? repr(heap, value) : std::string(to_text(heap, value));
    if (field.precision >= 0) {
      std::string cut;
      for (const std::string_view character : characters_of(text)) {
        if (static_cast<int>(count_characters(cut)) >= field.precision) break;
        cut += character;
      }
      text = cut;
    }
  }
  heap.charge_bytes(text.size() + static_cast<size_t>(field.width));
  heap.step(1 + text.size() / 32);
  return pad(text, field, !is_text || (numbers_right && as_number(value)));
}

Field parse_percent_field(std::string_view& spec) {
  Field field;
  while (!spec.empty() && std::string_view("-0+ #").find(spec[0]) != std::string_view::npos) {
    field.align = spec[0] == '-' ? '<' : field.align;
    field.zeros |= spec[0] == '0';
    field.plus |= spec[0] == '+';
    spec.remove_prefix(1);
  }
  field.width = take_number(spec, kMaxWidth);
  if (take(spec, '.')) field.precision = take_number(spec, kMaxPrecision);
  if (spec.empty()) fail("incomplete format");
  field.type = spec[0] == 'i' || spec[0] == 'u' ? 'd' : spec[0];
  if (std::string_view("srdfFeEgGxXo").find(field.type) == std::string_view::npos)
    fail("unsupported format character ", quoted(spec.substr(0, 1)));
  if (!field.align) field.align = field.zeros && field.type != 's' ? '\0' : '>';
  spec.remove_prefix(1);
  return field;
}

// [[fill]align][+][0][width][.precision][type]
Field parse_brace_field(std::string_view spec) {
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^'; };
  Field field;
  if (!spec.empty()) {
    const size_t fill = decode_character(spec).length;
    if (spec.size() > fill && is_align(spec[fill])) {
      field.fill = spec.substr(0, fill);
      spec.remove_prefix(fill);
    }
    if (is_align(spec[0])) {
      field.align = spec[0];
      spec.remove_prefix(1);
    }
  }
  field.plus = take(spec, '+');
  field.zeros = take(spec, '0');
  field.width = take_number(spec, kMaxWidth);
  if (take(spec, '.')) field.precision = take_number(spec, kMaxPrecision);
  if (!spec.empty()) field.type = spec[0];
  if (spec.size() > 1 ||
      (field.type && std::string_view("sdfFeEgGxXo").find(field.type) == std::string_view::npos))
    fail("unsupported format specification ", quoted(spec));
  return field;
}

}  // namespace

std::string format_percent(Heap& heap, std::string_view format, const Value& values) {
  const List* list = as_list(values);
  if (list && list->type != ListType::tuple) list = nullptr;
  size_t used = 0;
  const auto next_value = [&]() -> Value {
    if (list ? used >= list->items.size() : used >= 1)
      fail("not enough arguments for format string");
    ++used;
    return list ? list->items[used - 1] : values;
  };
  std::string out;
  for (size_t at = 0; at < format.size();) {
    const size_t percent = std::min(format.find('%', at), format.size());
    out += format.substr(at, percent - at);
    at = percent + 1;
    if (percent == format.size()) break;
    std::string_view spec = format.substr(at);
    if (take(spec, '%')) {
      out += '%';
    } else if (take(spec, '(')) {
      const size_t close = spec.find(')');
      if (close == std::string_view::npos) fail("incomplete format key");
      const Dict* dict = as_dict(values);
      if (!dict) fail("format requires a mapping");
      const Value* found = dict_find(heap, *dict, Text{spec.substr(0, close)});
      if (!found) fail("format: no key ", quoted(spec.substr(0, close)));
      spec.remove_prefix(close + 1);
      out += print_field(heap, *found, parse_percent_field(spec), false);
    } else {
      const Field field = parse_percent_field(spec);
      out += print_field(heap, next_value(), field, false);
    }
    at = format.size() - spec.size();
  }
  const bool complete =
      list ? used == list->items.size() : used > 0 || as_dict(values) || as_list(values);
  if (!complete) fail("not all arguments converted during string formatting");
  return out;
}

std::string format_braces(Heap& heap, std::string_view format, const Args& args) {
  std::string out;
  size_t automatic = 0;
  while (!format.empty()) {
    const char c = format[0];
    format.remove_prefix(1);
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (take(format, c)) {
      out += c;
      continue;
    }
    const size_t close = format.find('}');
    if (c == '}' || close == std::string_view::npos) fail("a single '", c, "' in a format string");
    const std::string_view field = format.substr(0, close);
    format.remove_prefix(close + 1);
    const size_t colon = std::min(field.find(':'), field.size());
    const std::string_view name = field.substr(0, colon);
    const Value* value = nullptr;
    if (const auto index = name.empty() ? Int(automatic++) : parse_int(name, 10)) {
      if (*index >= 0 && *index < static_cast<Int>(args.positional.size()))
        value = &args.positional[static_cast<size_t>(*index)];
    }
    for (const auto& [known, named] : args.named)
      if (known == name) value = &named;
    if (!value) fail("format: no argument for {", field, "}");
    const std::string_view spec = colon < field.size() ? field.substr(colon + 1) : "";
    out += print_field(heap, *value, parse_brace_field(spec), true);
  }
  return out;
}

}  // namespace slip::jinja
