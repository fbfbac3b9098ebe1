#include "text/jinja_lexer.h"

#include <algorithm>
#include <array>

#include "text/jinja_heap.h"
#include "text/jinja_literals.h"
#include "text/jinja_text.h"

namespace slip::jinja {
namespace {

// Line breaks of any kind become \n, and one at the very end goes.
std::string normalise_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Every byte of a non-ASCII character counts as part of a name; space was looked for before.
bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalise_newlines(source)), rest_(source_) {}

  std::vector<Token> run() {
    while (!rest_.empty()) lex_text();
    add(TokenType::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail_here(const std::string& message) const {
    throw Failure{.message = message, .line = line_};
  }

  void add(TokenType type, std::string text) {
    tokens_.push_back(Token{.type = type, .line = line_, .text = std::move(text)});
  }

  void add_data(std::string_view text) {
    if (!text.empty()) add(TokenType::data, std::string(text));
  }

  void advance(size_t bytes) {
    const std::string_view passed = rest_.substr(0, bytes);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    if (!passed.empty()) at_line_start_ = passed.back() == '\n';
    rest_.remove_prefix(bytes);
  }

  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    advance(text.size());
    return true;
  }

  void skip_space() { advance(leading_space(rest_)); }

  static size_t find_tag(std::string_view text) {
    for (size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
      const char next = at + 1 < text.size() ? text[at + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return at;
    }
    return std::string_view::npos;
  }

  // `text` without the space that a tag after it takes away: all of it for {%-; for a tag that is
  // not printed and stands alone at the start of its line, the indentation.
  std::string_view text_before_tag(std::string_view text, char sign, bool prints) const {
    if (sign == '-') return text.substr(0, text.size() - trailing_space(text));
    if (sign == '+' || prints) return text;
    const size_t newline = text.rfind('\n');
    if (newline == std::string_view::npos && !at_line_start_) return text;
    const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
    const std::string_view indentation = text.substr(line_begin);
    return leading_space(indentation) == indentation.size() ? text.substr(0, line_begin) : text;
  }

  void lex_text() {
    const size_t at = find_tag(rest_);
    if (at == std::string_view::npos) {
      add_data(rest_);
      return advance(rest_.size());
    }
    const char kind = rest_[at + 1];
    const char after = at + 2 < rest_.size() ? rest_[at + 2] : '\0';
    const char sign = after == '-' || after == '+' ? after : '\0';
    add_data(text_before_tag(rest_.substr(0, at), sign, kind == '{'));
    advance(at + (sign ? 3 : 2));
    if (kind == '#') return skip_comment();
    if (kind == '%' && skip_raw_begin()) return lex_raw();
    lex_tag(kind == '{');
  }

  // After "%}" or "#}" one line break goes; "-%}" takes all space; "+%}" takes nothing.
  void skip_comment() {
    const size_t at = rest_.find("#}");
    if (at == std::string_view::npos) fail_here("a comment is not closed with #}");
    const char sign = at > 0 ? rest_[at - 1] : '\0';
    advance(at + 2);
    if (sign == '-') return skip_space();
    if (sign != '+') skip("\n");
  }

  bool skip_raw_begin() {
    size_t at = leading_space(rest_);
    if (!rest_.substr(at).starts_with("raw")) return false;
    at += 3;
    at += leading_space(rest_.substr(at));
    const bool strips = rest_.substr(at).starts_with("-%}");
    if (!strips && !rest_.substr(at).starts_with("%}")) return false;
    advance(at + (strips ? 3 : 2));
    if (strips) skip_space();
    return true;
  }

  void lex_raw() {
    for (size_t at = rest_.find("{%"); at != std::string_view::npos;
         at = rest_.find("{%", at + 1)) {
      const std::string_view tag = rest_.substr(at + 2);
      const char sign = tag.starts_with('-') || tag.starts_with('+') ? tag[0] : '\0';
      size_t length = sign ? 1 : 0;
      length += leading_space(tag.substr(length));
      if (!tag.substr(length).starts_with("endraw")) continue;
      length += 6;
      length += leading_space(tag.substr(length));
      const std::string_view close = tag.substr(length);
      const char close_sign = close.starts_with("-%}")   ? '-'
                              : close.starts_with("+%}") ? '+'
                                                         : '\0';
      if (!close_sign && !close.starts_with("%}")) continue;
      add_data(text_before_tag(rest_.substr(0, at), sign, false));
      advance(at + 2 + length + (close_sign ? 3 : 2));
      if (close_sign == '-') return skip_space();
      if (close_sign != '+') skip("\n");
      return;
    }
    fail_here("{% raw %} is not closed with {% endraw %}");
  }

  void lex_tag(bool prints) {
    add(prints ? TokenType::print_begin : TokenType::block_begin, prints ? "{{" : "{%");
    const int begin_line = line_;
    open_brackets_.clear();
    previous_ = '\0';
    while (!(open_brackets_.empty() && skip_tag_end(prints))) {
      if (rest_.empty())
        throw Failure{.message = prints ? "{{ is not closed with }}" : "{% is not closed with %}",
                      .line = begin_line};
      lex_expression_token();
    }
  }

  bool skip_tag_end(bool prints) {
    const std::string_view close = prints ? "}}" : "%}";
    const bool strips = rest_.starts_with('-') && rest_.substr(1).starts_with(close);
    const bool keeps = !prints && rest_.starts_with('+') && rest_.substr(1).starts_with(close);
    if (!strips && !keeps && !rest_.starts_with(close)) return false;
    add(prints ? TokenType::print_end : TokenType::block_end, std::string(close));
    advance(close.size() + (strips || keeps ? 1 : 0));
    if (strips) {
      skip_space();
    } else if (!keeps && !prints) {
      skip("\n");
    }
    return true;
  }

  void lex_expression_token() {
    if (const size_t space = leading_space(rest_)) {
      previous_ = ' ';
      return advance(space);
    }
    const char first = rest_[0];
    if (is_digit(first)) return lex_number();
    if (first == '"' || first == '\'') return lex_string();
    if (is_name_byte(first)) return lex_name();
    lex_symbol();
  }

  // "x.0.1" is two indices, so nothing after a dot is a fraction.
  void lex_number() {
    const NumberLiteral number = scan_number(rest_, previous_ == '.');
    if (!number.error.empty()) fail_here(number.error);
    tokens_.push_back(Token{.type = number.is_real ? TokenType::real : TokenType::integer,
                            .line = line_,
                            .text = std::string(rest_.substr(0, number.length)),
                            .integer = number.integer,
                            .real = number.real});
    previous_ = '0';
    advance(number.length);
  }

  void lex_string() {
    const char quote = rest_[0];
    size_t at = 1;
    while (at < rest_.size() && rest_[at] != quote) at += rest_[at] == '\\' ? 2 : 1;
    if (at >= rest_.size()) fail_here("a string is not closed");
    std::string error;
    std::string text = unescape_string(rest_.substr(1, at - 1), error);
    if (!error.empty()) fail_here(error);
    add(TokenType::string, std::move(text));
    previous_ = quote;
    advance(at + 1);
  }

  void lex_name() {
    size_t length = 0;
    while (length < rest_.size() && is_name_byte(rest_[length])) ++length;
    add(TokenType::name, std::string(rest_.substr(0, length)));
    previous_ = 'a';
    advance(length);
  }

  void lex_symbol() {
    static constexpr std::array<std::string_view, 26> kSymbols = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const std::string_view symbol : kSymbols) {
      if (!rest_.starts_with(symbol)) continue;
      balance(symbol[0]);
      add(TokenType::symbol, std::string(symbol));
      previous_ = symbol.back();
      return advance(symbol.size());
    }
    fail_here(cat("unexpected character ", quoted(rest_.substr(0, 1))));
  }

  // Inside brackets "}}" and "%}" are not the end of the tag: {{ {'a': {}} }}.
  void balance(char c) {
    if (c == '(') open_brackets_ += ')';
    if (c == '[') open_brackets_ += ']';
    if (c == '{') open_brackets_ += '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (open_brackets_.empty()) fail_here(cat("unexpected '", c, "'"));
    if (open_brackets_.back() != c)
      fail_here(cat("unexpected '", c, "', expected '", open_brackets_.back(), "'"));
    open_brackets_.pop_back();
  }

  const std::string source_;
  std::string_view rest_;
  int line_ = 1;
  bool at_line_start_ = true;
  char previous_ = '\0';  // stands for the token before, inside a tag
  std::string open_brackets_;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace slip::jinja
