// Filters on texts and numbers.
#include "text/jinja_filters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/json_dump.h"
#include "text/jinja_builtins.h"
#include "text/jinja_numbers.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"

namespace slip::jinja {
namespace {

using CaseMapping = std::string (*)(std::string_view);

template <CaseMapping map_case>
Value change_case(Heap& heap, const Value& value, const Args& args) {
  const Parameters given(args, "the filter", {});
  return make_text(heap, map_case(to_text(heap, value)));
}

bool is_safe(const Value& value) {
  const auto* text = as<Text>(value);
  return text && text->safe;
}

Value trim(Heap& heap, const Value& value, const Args& args) {
  const Parameters given(args, "trim", {"chars"});
  return Text{strip(to_text(heap, value), given.text(0), Side::both), is_safe(value)};
}

Value to_string(Heap& heap, const Value& value, const Args&) {
  return Text{to_text(heap, value), is_safe(value)};
}

Value mark_safe(Heap& heap, const Value& value, const Args&) {
  return Text{to_text(heap, value), true};
}

Value escape(Heap& heap, const Value& value, const Args&) {
  if (is_safe(value)) return value;
  return make_text(heap, escape_html(to_text(heap, value)), true);
}

Value force_escape(Heap& heap, const Value& value, const Args&) {
  return make_text(heap, escape_html(to_text(heap, value)), true);
}

Value replace(Heap& heap, const Value& value, const Args& args) {
  const Parameters given(args, "replace", {"old", "new", "count"}, 2);
  const Value subject = Text{to_text(heap, value)};
  Args forwarded{{Text{to_text(heap, given[0])}, Text{to_text(heap, given[1])}}, {}};
  if (given.has(2) && !is<None>(given[2])) forwarded.positional.push_back(given[2]);
  return find_text_method("replace")(heap, subject, forwarded);
}

Value use_default(Heap&, const Value& value, const Args& args) {
  const Parameters given(args, "default", {"default_value", "boolean"});
  const bool missing = is<Undefined>(value) || (given.flag(1, false) && !truthy(value));
  if (!missing) return value;
  return given.has(0) ? given[0] : Value(Text{""});
}

// Deeper indentation than this serves nobody and multiplies the output.
constexpr Int kMaxJsonIndent = 64;

Value to_json_text(Heap& heap, const Value& value, const Args& args) {
  const Parameters given(args, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii_only = given.flag(0, false);
  style.sort_keys = given.flag(3, false);
  if (given.has(1) && !is<None>(given[1])) {
    style.multiline = true;
    style.item_separator = ",";
    const auto* text = as<Text>(given[1]);
    const Int width = text ? static_cast<Int>(text->bytes.size()) : given.integer(1, 0);
    if (width > kMaxJsonIndent) fail("tojson: an indent above 64 is not supported");
    style.indent = text ? std::string(text->bytes)
                        : std::string(static_cast<size_t>(std::max<Int>(width, 0)), ' ');
  }
  if (given.has(2) && !is<None>(given[2])) {
    const List* separators = iterate(heap, given[2]);
    if (separators->items.size() != 2) fail("tojson: separators must be a pair");
    style.item_separator = to_text(heap, separators->items[0]);
    style.key_separator = to_text(heap, separators->items[1]);
    if (style.item_separator.size() + style.key_separator.size() > kMaxJsonIndent)
      fail("tojson: separators are too long");
  }
  const Json json = to_json(heap, value, style.indent.size());
  return make_text(heap, dump_json(json, style));
}

Value indent(Heap& heap, const Value& value, const Args& args) {
  const Parameters given(args, "indent", {"width", "first", "blank"});
  const auto* text = given.has(0) ? as<Text>(given[0]) : nullptr;
  const Int width = text ? 0 : given.integer(0, 4);
  if (width > 1000) fail("indent: a width above 1000 is not supported");
  const std::string prefix = text ? std::string(text->bytes)
                                  : std::string(static_cast<size_t>(std::max<Int>(width, 0)), ' ');
  if (!is<Text>(value)) fail("indent: expected a string, got ", type_name(value));
  // Python's splitlines() drops a last line break, so that one more is added before.
  const std::string source = std::string(to_text(heap, value)) + "\n";
  const std::vector<std::string_view> lines = split_lines(source);
  heap.charge_bytes(source.size() + lines.size() * (prefix.size() + 1));
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i) out += '\n';
    const bool indented = i == 0 ? given.flag(1, false) : given.flag(2, false) || !lines[i].empty();
    if (indented) out += prefix;
    out += lines[i];
  }
  return make_text(heap, std::move(out));
}

constexpr double kTooLarge = 0x1p126;  // from here on, conversion to Int could overflow

Value to_int(Heap& heap, const Value& value, const Args& args) {
  const Parameters given(args, "int", {"default", "base"});
  require_defined(value);
  const Value otherwise = given.has(0) ? given[0] : Value(Int{0});
  if (const auto integer = as_int(value)) return *integer;
  std::optional<double> real = as_number(value);
  if (const auto* text = as<Text>(value)) {
    heap.step(text->bytes.size() / 8);
    if (const auto integer = parse_int(text->bytes, given.integer(1, 10))) return *integer;
    real = parse_float(text->bytes);
  }
  if (!real || !(std::fabs(*real) < kTooLarge)) return otherwise;
  return static_cast<Int>(*real);
}

Value to_float(Heap&, const Value& value, const Args& args) {
  const Parameters given(args, "float", {"default"});
  require_defined(value);
  const auto* text = as<Text>(value);
  const auto real = text ? parse_float(text->bytes) : as_number(value);
  if (real) return *real;
  return given.has(0) ? given[0] : Value(0.0);
}

Value absolute(Heap&, const Value& value, const Args&) {
  require_defined(value);
  if (const auto* real = as<double>(value)) return std::fabs(*real);
  const auto integer = as_int(value);
  if (!integer) fail("bad operand type for abs(): '", type_name(value), "'");
  return *integer < 0 ? apply_unary(UnaryOp::negate, Value(*integer)) : Value(*integer);
}

Value round_number(Heap&, const Value& value, const Args& args) {
  const Parameters given(args, "round", {"precision", "method"});
  require_defined(value);
  const Int precision = std::clamp<Int>(given.integer(0, 0), -300, 300);
  const std::string_view method = given.text(1).value_or("common");
  if (method != "common" && method != "ceil" && method != "floor")
    fail("method must be common, ceil or floor");
  const auto number = as_number(value);
  if (!number) fail("type ", type_name(value), " cannot be rounded");
  if (method == "common") {
    const auto integer = as_int(value);
    if (integer && precision >= 0) return *integer;
    const double rounded = round_decimal(*number, static_cast<int>(precision));
    if (!integer) return rounded;
    if (std::fabs(rounded) >= kTooLarge) fail("integer too large");
    return static_cast<Int>(rounded);
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = *number * scale;
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale;
}

Value format(Heap& heap, const Value& value, const Args& args) {
  const std::string_view pattern = to_text(heap, value);
  if (args.named.empty())
    return make_text(
        heap, format_percent(heap, pattern, make_list(heap, args.positional, ListType::tuple)));
  Dict* names = heap.make<Dict>();
  for (const auto& [name, named] : args.named) dict_set(heap, *names, Text{name}, named);
  return make_text(heap, format_percent(heap, pattern, static_cast<const Dict*>(names)));
}

Value print_pretty(Heap& heap, const Value& value, const Args&) {
  return make_text(heap, repr(heap, value));
}

}  // namespace

Builtin find_filter(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Builtin>, 21> kFilters = {{
      {"trim", trim},
      {"string", to_string},
      {"safe", mark_safe},
      {"escape", escape},
      {"e", escape},
      {"forceescape", force_escape},
      {"upper", change_case<to_upper>},
      {"lower", change_case<to_lower>},
      {"capitalize", change_case<capitalize>},
      {"title", change_case<title_case_words>},
      {"replace", replace},
      {"default", use_default},
      {"d", use_default},
      {"tojson", to_json_text},
      {"indent", indent},
      {"int", to_int},
      {"float", to_float},
      {"abs", absolute},
      {"round", round_number},
      {"format", format},
      {"pprint", print_pretty},
  }};
  for (const auto& [known, filter] : kFilters)
    if (known == name) return filter;
  return find_sequence_filter(name);
}

}  // namespace slip::jinja
