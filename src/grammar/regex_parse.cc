#include <algorithm>
#include <charconv>

#include "grammar/regex.h"
#include "grammar/regex_classes.h"
#include "text/utf8.h"

namespace slip {
namespace {

constexpr size_t kMaxPatternBytes = 16384;
constexpr int kMaxGroupDepth = 100;
constexpr int64_t kMaxCount = 1'000'000;

class RegexParser {
 public:
  explicit RegexParser(std::string_view pattern) : pattern_(pattern) {}

  Result<RegexNode> run() {
    if (pattern_.size() > kMaxPatternBytes)
      return error("the pattern is longer than ", kMaxPatternBytes, " bytes");
    if (!is_valid_utf8(pattern_)) return error("the pattern is not valid UTF-8");
    SLIP_TRY(RegexNode node, parse_choice(0));
    if (at_ < pattern_.size()) return fail("unmatched ')'");
    return node;
  }

 private:
  Error fail(std::string_view what) const {
    return error("regular expression, byte ", at_, ": ", what);
  }
  bool more() const { return at_ < pattern_.size(); }
  char peek() const { return more() ? pattern_[at_] : '\0'; }
  bool take(std::string_view text) {
    if (!pattern_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }

  Result<RegexNode> parse_choice(int depth) {
    if (depth > kMaxGroupDepth) return fail("groups nest deeper than 100");
    std::vector<RegexNode> ways;
    do {
      SLIP_TRY(RegexNode way, parse_sequence(depth));
      ways.push_back(std::move(way));
    } while (take("|"));
    if (ways.size() == 1) return std::move(ways[0]);
    return RegexNode{.kind = RegexNode::Kind::choice, .parts = std::move(ways)};
  }

  Result<RegexNode> parse_sequence(int depth) {
    RegexNode sequence{.kind = RegexNode::Kind::sequence};
    while (more() && peek() != '|' && peek() != ')') {
      SLIP_TRY(RegexNode atom, parse_atom(depth));
      SLIP_TRY(RegexNode part, parse_quantifiers(std::move(atom)));
      sequence.parts.push_back(std::move(part));
    }
    return sequence;
  }

  Result<RegexNode> parse_atom(int depth) {
    if (take("^")) return RegexNode{.kind = RegexNode::Kind::begin_anchor};
    if (take("$")) return RegexNode{.kind = RegexNode::Kind::end_anchor};
    if (take(".")) return characters(any_but_line_ends());
    if (take("(")) return parse_group(depth);
    if (take("[")) return parse_class();
    if (peek() == '*' || peek() == '+' || peek() == '?') return fail("nothing to repeat");
    if (peek() == '\\') {
      SLIP_TRY(CharSet set, parse_escape(false));
      return characters(std::move(set));
    }
    return characters({take_character()});
  }

  Result<RegexNode> parse_group(int depth) {
    if (take("?")) {
      if (peek() == '=' || peek() == '!') return fail("lookahead is not supported");
      if (take("<=") || take("<!")) return fail("lookbehind is not supported");
      if (take("<") || take("P<")) {
        const size_t end = pattern_.find('>', at_);
        if (end == std::string_view::npos) return fail("unfinished group name");
        at_ = end + 1;
      } else if (!take(":")) {
        return fail("flags and this kind of group are not supported");
      }
    }
    SLIP_TRY(RegexNode inner, parse_choice(depth + 1));
    if (!take(")")) return fail("missing ')'");
    return inner;
  }

  Result<RegexNode> parse_quantifiers(RegexNode atom) {
    while (true) {
      int64_t min = 0;
      int64_t max = kUnbounded;
      if (take("*")) {
      } else if (take("+")) {
        min = 1;
      } else if (take("?")) {
        max = 1;
      } else if (peek() == '{') {
        SLIP_TRY(const bool counts, parse_counts(min, max));
        if (!counts) return atom;
      } else {
        return atom;
      }
      if (take("+")) return fail("possessive repetition is not supported");
      take("?");  // as few as possible: the same texts fit
      if (atom.kind == RegexNode::Kind::begin_anchor || atom.kind == RegexNode::Kind::end_anchor)
        return fail("a repeated anchor");
      atom = RegexNode{
          .kind = RegexNode::Kind::repeat, .parts = {std::move(atom)}, .min = min, .max = max};
      if (++quantifiers_ > 1000) return fail("more than 1000 repetitions");
    }
  }

  // {n}, {n,}, {n,m}. False: a brace that stands for itself follows.
  Result<bool> parse_counts(int64_t& min, int64_t& max) {
    const size_t start = at_++;
    const bool has_min = take_number(min);
    max = min;
    if (has_min && take(",") && !take_number(max)) max = kUnbounded;
    if (!has_min || !take("}")) {
      at_ = start;
      return false;
    }
    if (min > kMaxCount || max > kMaxCount)
      return fail(cat("repetitions of more than ", kMaxCount, " are not supported"));
    if (max != kUnbounded && max < min) return fail("the repetition's bounds are reversed");
    return true;
  }

  bool take_number(int64_t& number) {
    const char* first = pattern_.data() + at_;
    const char* last = first + std::min<size_t>(pattern_.size() - at_, 18);
    const auto [end, failure] = std::from_chars(first, last, number);
    if (failure != std::errc() || *first == '-') return false;
    at_ += size_t(end - first);
    return true;
  }

  Result<RegexNode> parse_class() {
    const bool negated = take("^");
    CharSet set;
    bool closed = false;
    for (bool first = true; more() && !(closed = take("]")); first = false) {
      if (first && peek() == ']') return fail("an empty class");
      SLIP_TRY(CharSet low, parse_class_character());
      const bool is_range = peek() == '-' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']';
      if (is_range && low.size() == 1 && low[0].first == low[0].last) {
        ++at_;
        SLIP_TRY(const CharSet high, parse_class_character());
        if (high.size() != 1 || high[0].first != high[0].last || high[0].first < low[0].first)
          return fail("a range in a class that is none");
        low[0].last = high[0].last;
      }
      set.insert(set.end(), low.begin(), low.end());
    }
    if (!closed) return fail("missing ']'");
    return characters(negated ? complement(set) : normalised(std::move(set)));
  }

  Result<CharSet> parse_class_character() {
    if (!more()) return fail("missing ']'");
    if (peek() == '\\') return parse_escape(true);
    if (peek() == '[' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] == ':')
      return fail("POSIX classes are not supported");
    return CharSet{take_character()};
  }

  CharRange take_character() {
    const CodePoint c = decode_valid_utf8(pattern_.data() + at_);
    at_ += c.length;
    return {c.value, c.value};
  }

  Result<CharSet> parse_escape(bool in_class) {
    ++at_;
    if (!more()) return fail("a backslash at the end");
    const char c = peek();
    if (c == 'b' && in_class) {
      ++at_;
      return CharSet{{'\b', '\b'}};
    }
    if (c == 'b' || c == 'B') return fail("word boundaries are not supported");
    if (c == 'k' || (c >= '1' && c <= '9')) return fail("back references are not supported");
    if (c == 'A' || c == 'z' || c == 'Z' || c == 'G')
      return fail("of anchors only ^ and $ are supported");
    if (c == 'p' || c == 'P') return parse_property();
    if (c == 'x' || c == 'u') return parse_hex();
    if (c == 'c') {
      ++at_;
      const char control = peek();
      if (!((control | 32) >= 'a' && (control | 32) <= 'z')) return fail("\\c without a letter");
      ++at_;
      return CharSet{{uint32_t(control & 31), uint32_t(control & 31)}};
    }
    if (std::optional<CharSet> known = escaped_class(c)) {
      ++at_;
      return *std::move(known);
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
      return fail(cat("the escape \\", std::string(1, c), " is not supported"));
    return CharSet{take_character()};
  }

  Result<CharSet> parse_property() {
    const bool negated = pattern_[at_++] == 'P';
    const size_t end = pattern_.find('}', at_);
    if (!take("{") || end == std::string_view::npos) return fail("\\p without {...}");
    const std::string_view name = pattern_.substr(at_, end - at_);
    const std::optional<CharSet> set = unicode_property(name);
    if (!set) return fail(cat("the property \\p{", name, "} is not supported"));
    at_ = end + 1;
    return negated ? complement(*set) : *set;
  }

  Result<CharSet> parse_hex() {
    const bool two_digits = pattern_[at_++] == 'x';
    const bool braces = take("{");
    const size_t end =
        braces ? std::min(pattern_.find('}', at_), pattern_.size()) : at_ + (two_digits ? 2 : 4);
    if (end > pattern_.size() || end == at_ || end > at_ + 6) return fail("too few or many digits");
    uint32_t value = 0;
    const char* last = pattern_.data() + end;
    if (std::from_chars(pattern_.data() + at_, last, value, 16).ptr != last)
      return fail("not a hexadecimal number");
    at_ = end;
    if (braces && !take("}")) return fail("missing '}'");
    const bool is_character = value <= kMaxCodePoint && (value < 0xD800 || value > 0xDFFF);
    if (!is_character) return fail("not a character");
    return CharSet{{value, value}};
  }

  static RegexNode characters(CharSet set) {
    return {.kind = RegexNode::Kind::characters, .characters = std::move(set)};
  }

  std::string_view pattern_;
  size_t at_ = 0;
  int quantifiers_ = 0;
};

}  // namespace

Result<RegexNode> parse_regex(std::string_view pattern) { return RegexParser(pattern).run(); }

}  // namespace slip
