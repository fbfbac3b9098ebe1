#include "grammar/number_ranges.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "grammar/json_rules.h"

namespace slip {
namespace {

// Two numbers of at most 15 decimal digits are two doubles, and neither is the double of a number
// that needs more digits. So such numbers, once read, are on the same side of a bound as written.
constexpr size_t kExactDigits = 15;

ExprId digit_range(Rules& rules, char first, char last) {
  return rules.bytes(ByteSet::range(uint8_t(first), uint8_t(last)));
}

// Digits from position `at` on of numbers that are as long as both bounds. `above`, `below`: what
// was written so far is already inside that bound.
ExprId digits_between(Rules& rules, const std::string& min, const std::string& max, size_t at,
                      bool above, bool below) {
  if (at == min.size()) return rules.literal("");
  if (above && below)
    return rules.sequence(std::vector<ExprId>(min.size() - at, digit_range(rules, '0', '9')));
  const char first = above ? '0' : min[at];
  const char last = below ? '9' : max[at];
  const auto with = [&](char from, char to, bool now_above, bool now_below) {
    return rules.sequence({digit_range(rules, from, to),
                           digits_between(rules, min, max, at + 1, now_above, now_below)});
  };
  if (first == last) return with(first, last, above, below);
  std::vector<ExprId> ways;
  if (!above) ways.push_back(with(first, first, false, true));
  const char from = char(first + !above);
  const char to = char(last - !below);
  if (from <= to) ways.push_back(with(from, to, true, true));
  if (!below) ways.push_back(with(last, last, true, false));
  return rules.choice(std::move(ways));
}

// 0 <= min <= max, one alternative per number of digits.
ExprId naturals_between(Rules& rules, int64_t min, int64_t max) {
  std::vector<ExprId> ways;
  for (int64_t first = min; first <= max;) {
    const std::string low = std::to_string(first);
    const std::string nines(low.size(), '9');
    const int64_t last = std::min<int64_t>(max, std::stoll(nines));
    ways.push_back(digits_between(rules, low, std::to_string(last), 0, false, false));
    first = last + 1;
  }
  return rules.choice(std::move(ways));
}

// A bound on a number without sign.
struct Magnitude {
  int64_t whole;
  std::string fraction;  // digits, without zeros at the end
  bool exclusive;
};

Result<Magnitude> read_magnitude(double value, bool exclusive) {
  char text[400];
  const auto end =
      std::to_chars(text, text + sizeof text, std::fabs(value), std::chars_format::fixed).ptr;
  const std::string_view digits(text, size_t(end - text));
  const size_t point = std::min(digits.find('.'), digits.size());
  std::string fraction(digits.substr(std::min(point + 1, digits.size())));
  while (fraction.ends_with('0')) fraction.pop_back();
  if (point > kExactDigits)
    return error("a bound of more than ", kExactDigits, " digits cannot be kept exactly");
  return Magnitude{std::stoll(std::string(digits.substr(0, point))), std::move(fraction),
                   exclusive};
}

// What follows the digits before the point: nothing, or a point and up to `max_digits` digits.
class Fractions {
 public:
  Fractions(Rules& rules, const Magnitude* min, const Magnitude* max, size_t max_digits)
      : rules_(rules), min_(min), max_(max), max_digits_(max_digits) {}

  ExprId expression() {
    std::vector<ExprId> ways;
    if (may_end(0, !min_, !max_)) ways.push_back(rules_.literal(""));
    ways.push_back(rules_.sequence({rules_.literal("."), digits(0, !min_, !max_)}));
    return rules_.choice(std::move(ways));
  }

 private:
  static char digit(const Magnitude& bound, size_t at) {
    return at < bound.fraction.size() ? bound.fraction[at] : '0';
  }
  bool may_end(size_t at, bool above, bool below) const {
    if (!above && (at < min_->fraction.size() || min_->exclusive)) return false;
    return below || at < max_->fraction.size() || !max_->exclusive;
  }

  // At least one more digit.
  ExprId digits(size_t at, bool above, bool below) {
    if (at == max_digits_) return rules_.choice({});
    if (above && below)
      return rules_.repeat(digit_range(rules_, '0', '9'), 1, int64_t(max_digits_ - at));
    const char first = above ? '0' : digit(*min_, at);
    const char last = below ? '9' : digit(*max_, at);
    std::vector<ExprId> ways;
    const auto with = [&](char from, char to, bool now_above, bool now_below) {
      if (from > to) return;
      std::vector<ExprId> rest = {digits(at + 1, now_above, now_below)};
      if (may_end(at + 1, now_above, now_below)) rest.push_back(rules_.literal(""));
      ways.push_back(
          rules_.sequence({digit_range(rules_, from, to), rules_.choice(std::move(rest))}));
    };
    if (first == last) {
      with(first, last, above, below);
    } else {
      if (!above) with(first, first, false, true);
      with(char(first + !above), char(last - !below), true, true);
      if (!below) with(last, last, true, false);
    }
    return rules_.choice(std::move(ways));
  }

  Rules& rules_;
  const Magnitude* min_;
  const Magnitude* max_;
  size_t max_digits_;
};

// Numbers without sign; `max` may be missing.
ExprId magnitudes_between(Rules& rules, const Magnitude& min, const Magnitude* max) {
  const auto is_less = [](const Magnitude& a, const Magnitude& b) {
    return a.whole != b.whole ? a.whole < b.whole : a.fraction < b.fraction;
  };
  if (max && is_less(*max, min)) return rules.choice({});
  const size_t longest = std::to_string(max ? max->whole : min.whole).size();
  const size_t max_digits = kExactDigits > longest ? kExactDigits - longest : 1;
  const auto with_fraction = [&](ExprId whole, const Magnitude* low, const Magnitude* high) {
    return rules.sequence({whole, Fractions(rules, low, high, max_digits).expression()});
  };
  const auto whole = [&](int64_t number) { return rules.literal(std::to_string(number)); };
  if (max && max->whole == min.whole) return with_fraction(whole(min.whole), &min, max);
  const int64_t largest = max ? max->whole - 1 : int64_t(99'999'999'999'999);
  std::vector<ExprId> ways = {with_fraction(whole(min.whole), &min, nullptr)};
  if (largest > min.whole)
    ways.push_back(
        with_fraction(naturals_between(rules, min.whole + 1, largest), nullptr, nullptr));
  if (max) ways.push_back(with_fraction(whole(max->whole), nullptr, max));
  return rules.choice(std::move(ways));
}

}  // namespace

ExprId integer_between(Rules& rules, int64_t min, int64_t max) {
  std::vector<ExprId> ways;
  if (min < 0)
    ways.push_back(rules.sequence(
        {rules.literal("-"), naturals_between(rules, std::max<int64_t>(1, -max), -min)}));
  if (max >= 0) ways.push_back(naturals_between(rules, std::max<int64_t>(0, min), max));
  return rules.choice(std::move(ways));
}

Result<ExprId> number_between(Rules& rules, std::optional<NumberBound> min,
                              std::optional<NumberBound> max) {
  const Magnitude zero{0, "", false};
  std::optional<Magnitude> low;
  std::optional<Magnitude> high;
  if (min) {
    SLIP_TRY(low, read_magnitude(min->value, min->exclusive));
  }
  if (max) {
    SLIP_TRY(high, read_magnitude(max->value, max->exclusive));
  }
  std::vector<ExprId> ways;
  // A bound of zero bounds both signs: as the least magnitude, or as the largest.
  if (!max || max->value >= 0) {
    const bool min_counts = min && min->value >= 0;
    ways.push_back(magnitudes_between(rules, min_counts ? *low : zero, high ? &*high : nullptr));
  }
  if (!min || min->value < 0) {
    const bool max_counts = max && max->value <= 0;
    ways.push_back(
        rules.sequence({rules.literal("-"), magnitudes_between(rules, max_counts ? *high : zero,
                                                               low ? &*low : nullptr)}));
  }
  return rules.choice(std::move(ways));
}

}  // namespace slip
