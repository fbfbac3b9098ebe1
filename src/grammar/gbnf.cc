#include "grammar/gbnf.h"

#include <charconv>
#include <map>
#include <string>

#include "grammar/characters.h"
#include "text/utf8.h"

namespace slip {
namespace {

constexpr size_t kMaxGrammarBytes = 100'000;
constexpr int kMaxRuleDepth = 100;
constexpr int64_t kMaxRuleRepetitions = 100'000;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

class GbnfParser {
 public:
  GbnfParser(Rules& rules, std::string_view text) : rules_(rules), text_(text) {}

  Result<ExprId> run() {
    if (text_.size() > kMaxGrammarBytes)
      return error("the grammar is longer than ", kMaxGrammarBytes, " bytes");
    if (!is_valid_utf8(text_)) return error("the grammar is not valid UTF-8");
    for (skip_blanks(true); at_ < text_.size(); skip_blanks(true)) SLIP_TRY_STATUS(parse_rule());
    for (const auto& [name, rule] : names_)
      if (!rule.defined) return error("grammar: the rule \"", name, "\" is used but not defined");
    const auto root = names_.find("root");
    if (root == names_.end()) return error("grammar: there is no rule \"root\"");
    return rules_.call(root->second.id);
  }

 private:
  struct Named {
    RuleId id;
    bool defined = false;
  };

  Error fail(std::string_view what) const { return error("grammar, byte ", at_, ": ", what); }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  // Spaces and comments; line breaks too where a rule cannot end.
  void skip_blanks(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view take_name() {
    const size_t start = at_;
    while (is_name_character(peek())) ++at_;
    return text_.substr(start, at_ - start);
  }

  Named& named(std::string_view name) {
    const auto known = names_.find(name);
    if (known != names_.end()) return known->second;
    const RuleId id = rules_.add_rule("the rule \"" + std::string(name) + "\"");
    return names_.emplace(std::string(name), Named{id}).first->second;
  }

  Status parse_rule() {
    const std::string_view name = take_name();
    if (name.empty()) return fail("expected the name of a rule");
    skip_blanks(false);
    if (!take("::=")) return fail("expected ::=");
    Named& rule = named(name);
    if (rule.defined) return fail("the rule is defined twice");
    rule.defined = true;
    skip_blanks(true);
    SLIP_TRY(const ExprId body, parse_choice(0));
    rules_.define(rule.id, body);
    if (at_ < text_.size() && peek() != '\n' && peek() != '\r')
      return fail("expected the end of the rule");
    return {};
  }

  Result<ExprId> parse_choice(int depth) {
    if (depth > kMaxRuleDepth) return fail("groups nest deeper than 100");
    std::vector<ExprId> ways;
    do {
      skip_blanks(true);
      SLIP_TRY(const ExprId way, parse_sequence(depth));
      ways.push_back(way);
    } while (take_bar());
    return rules_.choice(std::move(ways));
  }

  // Alternatives may go on in the next line.
  bool take_bar() {
    const size_t end = at_;
    skip_blanks(true);
    if (take("|")) return true;
    at_ = end;
    return false;
  }

  Result<ExprId> parse_sequence(int depth) {
    std::vector<ExprId> parts;
    while (true) {
      skip_blanks(depth > 0);
      const char c = peek();
      if (c == '\0' || c == '|' || c == ')' || c == '\n' || c == '\r') break;
      SLIP_TRY(const ExprId atom, parse_atom(depth));
      SLIP_TRY(const ExprId part, parse_repetitions(atom));
      parts.push_back(part);
    }
    if (parts.empty()) return rules_.literal("");
    return rules_.sequence(std::move(parts));
  }

  Result<ExprId> parse_atom(int depth) {
    if (take("\"")) return parse_text();
    if (take("[")) return parse_class();
    if (take(".")) return one_character(rules_, {{0, kMaxCodePoint}}, Spelling::plain);
    if (take("(")) {
      SLIP_TRY(const ExprId inner, parse_choice(depth + 1));
      skip_blanks(true);
      if (!take(")")) return fail("missing ')'");
      return inner;
    }
    const std::string_view name = take_name();
    if (name.empty()) return fail("expected a text, a class, a group or a rule");
    return rules_.call(named(name).id);
  }

  Result<ExprId> parse_repetitions(ExprId part) {
    for (int count = 0;; ++count) {
      if (count > kMaxRuleDepth) return fail("too many repetitions of repetitions");
      if (take("*")) {
        part = rules_.repeat(part, 0, kUnbounded);
      } else if (take("+")) {
        part = rules_.repeat(part, 1, kUnbounded);
      } else if (take("?")) {
        part = rules_.optional(part);
      } else if (take("{")) {
        int64_t min = 0;
        int64_t max = kUnbounded;
        const bool has_min = take_number(min);
        if (!take(",")) {
          if (!has_min) return fail("expected {m}, {m,} or {m,n}");
          max = min;
        } else {
          take_number(max);
        }
        if (!take("}")) return fail("missing '}'");
        if (min > kMaxRuleRepetitions || max > kMaxRuleRepetitions)
          return fail(cat("repetitions of more than ", kMaxRuleRepetitions, " are not supported"));
        if (max != kUnbounded && max < min) return fail("the repetition's bounds are reversed");
        part = rules_.repeat(part, min, max);
      } else {
        return part;
      }
    }
  }

  bool take_number(int64_t& number) {
    const size_t start = at_;
    while (peek() >= '0' && peek() <= '9' && at_ - start < 18) ++at_;
    std::from_chars(text_.data() + start, text_.data() + at_, number);
    return at_ > start;
  }

  Result<ExprId> parse_text() {
    std::string text;
    while (!take("\"")) {
      SLIP_TRY(const uint32_t c, take_character());
      append_utf8(c, text);
    }
    return rules_.literal(text);
  }

  Result<ExprId> parse_class() {
    const bool negated = take("^");
    CharSet set;
    while (!take("]")) {
      SLIP_TRY(const uint32_t first, take_character());
      uint32_t last = first;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        SLIP_TRY(last, take_character());
        if (last < first) return fail("a range in a class that is none");
      }
      set.push_back({first, last});
    }
    return one_character(rules_, negated ? complement(set) : set, Spelling::plain);
  }

  // One character of a text or class, maybe escaped.
  Result<uint32_t> take_character() {
    if (at_ >= text_.size() || peek() == '\n') return fail("unfinished text or class");
    if (!take("\\")) {
      const CodePoint c = decode_valid_utf8(text_.data() + at_);
      at_ += c.length;
      return c.value;
    }
    const char c = peek();
    ++at_;
    switch (c) {
      case 'n': return uint32_t('\n');
      case 'r': return uint32_t('\r');
      case 't': return uint32_t('\t');
      case 'x': return take_hex(2);
      case 'u': return take_hex(4);
      case 'U': return take_hex(8);
      default: break;
    }
    if (c == '\0' || is_name_character(c)) {
      --at_;
      return fail("unknown escape");
    }
    --at_;
    const CodePoint plain = decode_valid_utf8(text_.data() + at_);
    at_ += plain.length;
    return plain.value;
  }

  Result<uint32_t> take_hex(size_t digits) {
    uint32_t value = 0;
    if (at_ + digits > text_.size()) return fail("too few digits");
    const char* last = text_.data() + at_ + digits;
    if (std::from_chars(text_.data() + at_, last, value, 16).ptr != last)
      return fail("not a hexadecimal number");
    at_ += digits;
    const bool is_character = value <= kMaxCodePoint && (value < 0xD800 || value > 0xDFFF);
    if (!is_character) return fail("not a character");
    return value;
  }

  Rules& rules_;
  std::string_view text_;
  size_t at_ = 0;
  std::map<std::string, Named, std::less<>> names_;
};

}  // namespace

Result<ExprId> add_gbnf(Rules& rules, std::string_view text) {
  return GbnfParser(rules, text).run();
}

}  // namespace slip
