#include <algorithm>
#include <cmath>
#include <limits>

#include "grammar/formats.h"
#include "grammar/number_ranges.h"
#include "grammar/regex.h"
#include "grammar/schema_compiler.h"

namespace slip {
namespace {

constexpr int64_t kLargestInteger = 999'999'999'999'999'999;  // kMaxIntegerDigits nines

// The stricter of an inclusive and an exclusive bound.
Result<std::optional<NumberBound>> read_bound(const JsonObject& schema, const char* inclusive,
                                              const char* exclusive, bool is_min) {
  std::optional<NumberBound> bound;
  const Json* including = schema.if_contains(inclusive);
  const Json* excluding = schema.if_contains(exclusive);
  if (including) {
    if (!including->is_number()) return error(inclusive, ": expected a number");
    bound = NumberBound{including->to_number<double>()};
  }
  if (!excluding) return bound;
  // Draft 4: a flag that belongs to the other keyword.
  if (excluding->is_bool()) {
    if (bound) bound->exclusive = excluding->get_bool();
    return bound;
  }
  if (!excluding->is_number()) return error(exclusive, ": expected a number");
  const double value = excluding->to_number<double>();
  const bool is_stricter = !bound || (is_min ? value >= bound->value : value <= bound->value);
  if (is_stricter) bound = NumberBound{value, true};
  return bound;
}

// The largest integer not above the bound; with the signs turned, the smallest not below.
int64_t last_integer(const NumberBound& bound) {
  double last = std::floor(bound.value);
  if (bound.exclusive && last == bound.value) last -= 1;
  return int64_t(std::clamp(last, -double(kLargestInteger), double(kLargestInteger)));
}

}  // namespace

Result<ExprId> SchemaCompiler::compile_number(const JsonObject& schema, bool integer,
                                              const std::string& path) {
  Result<std::optional<NumberBound>> min = read_bound(schema, "minimum", "exclusiveMinimum", true);
  if (!min.ok()) return at_path(std::move(min).failure(), path);
  Result<std::optional<NumberBound>> max = read_bound(schema, "maximum", "exclusiveMaximum", false);
  if (!max.ok()) return at_path(std::move(max).failure(), path);
  const std::optional<NumberBound>& low = min.value();
  const std::optional<NumberBound>& high = max.value();
  if (!low && !high) return integer ? json_.integer() : json_.number();
  if (integer) {
    // 2^53: beyond, a double no longer tells neighbours apart.
    for (const auto& bound : {low, high})
      if (bound && std::fabs(bound->value) > 9007199254740992.0 &&
          std::fabs(bound->value) < double(kLargestInteger) && !options_.lenient)
        return at_path(error("a bound beyond 2^53 cannot be kept exactly"), path);
    const int64_t first = low ? -last_integer({-low->value, low->exclusive}) : -kLargestInteger;
    const int64_t last = high ? last_integer(*high) : kLargestInteger;
    if (first > last) return at_path(error("no integer lies between minimum and maximum"), path);
    return integer_between(rules_, first, std::min(last, kLargestInteger));
  }
  Result<ExprId> range = number_between(rules_, low, high);
  if (range.ok()) return range;
  if (options_.lenient) return json_.number();
  return at_path(std::move(range).failure(), path);
}

Result<StringForm> read_string_form(const JsonObject& schema, bool lenient) {
  StringForm form;
  SLIP_TRY(const std::optional<int64_t> min, count_keyword(schema, "minLength"));
  SLIP_TRY(const std::optional<int64_t> max, count_keyword(schema, "maxLength"));
  form.min = min.value_or(0);
  form.max = max.value_or(kUnbounded);
  if (form.max != kUnbounded && form.min > form.max)
    return error("minLength is larger than maxLength");

  std::string pattern;
  form.meaning = RegexMeaning::part;
  if (const Json* given = schema.if_contains("pattern")) {
    if (!given->is_string()) return error("pattern: expected a string");
    pattern = text_of(*given);
  } else if (const Json* format = schema.if_contains("format"); format && format->is_string()) {
    pattern = format_pattern(text_of(*format)).value_or("");
    form.meaning = RegexMeaning::whole;
  }
  if (pattern.empty()) return form;

  Result<RegexNode> regex = parse_regex(pattern);
  if (!regex.ok() && lenient) return form;
  if (!regex.ok())
    return std::move(regex).failure().in(schema.contains("pattern") ? "pattern" : "format");
  form.regex = std::move(regex).value();
  const LengthRange lengths = regex_lengths(*form.regex, form.meaning);
  const bool fits =
      lengths.min >= form.min &&
      (form.max == kUnbounded || (lengths.max != kUnbounded && lengths.max <= form.max));
  if (!fits && !lenient)
    return error("minLength or maxLength beside a pattern or format that does not imply it");
  return form;
}

Result<ExprId> SchemaCompiler::compile_string(const JsonObject& schema, const std::string& path) {
  Result<StringForm> form = read_string_form(schema, options_.lenient);
  if (!form.ok()) return at_path(std::move(form).failure(), path);
  const auto& [min, max, regex, meaning] = form.value();
  if (!regex) return json_.string(min, max);
  Result<ExprId> inner = regex_expression(rules_, *regex, meaning, Spelling::json_string);
  if (inner.ok()) return json_.quoted(inner.value());
  if (options_.lenient) return json_.string(min, max);
  return at_path(std::move(inner).failure().in("pattern"), path);
}

}  // namespace slip
