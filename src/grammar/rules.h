// The one form that every constraint is written in: rules over bytes. A rule is made of byte
// classes, sequences, alternatives, repetitions and calls of rules; calls may recurse, but not
// before a byte has been read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/byte_set.h"
#include "grammar/token_index.h"

namespace slip {

enum class ExprId : int32_t {};
enum class RuleId : int32_t {};

inline constexpr int64_t kUnbounded = -1;

struct Expr {
  enum class Kind : uint8_t { bytes, literal, sequence, choice, repeat, call, tag, text_without };
  Kind kind;
  ByteSet bytes = {};
  std::string text = {};               // literal, tag
  std::vector<ExprId> parts = {};      // sequence, choice; of a repeat the one part
  std::vector<std::string> tags = {};  // text_without
  RuleId rule = {};
  int64_t min = 0;
  int64_t max = kUnbounded;
  // repeat: what it repeats contains every character of this kind, and is one character.
  std::optional<TextKind> text_kind = {};
  bool any_bytes = false;  // text_without: not only whole characters
  bool free = false;       // text_without: special tokens too
};

// Expressions are made bottom-up and never change, so that one may be part of several.
class Rules {
 public:
  ExprId bytes(const ByteSet& set) { return add({.kind = Expr::Kind::bytes, .bytes = set}); }
  ExprId literal(std::string_view text) {
    return add({.kind = Expr::Kind::literal, .text = std::string(text)});
  }
  ExprId sequence(std::vector<ExprId> parts);
  // Texts among the parts are merged where they begin alike. Of no parts: nothing fits.
  ExprId choice(std::vector<ExprId> parts);
  ExprId literals(std::vector<std::string> texts);
  ExprId repeat(ExprId part, int64_t min, int64_t max, std::optional<TextKind> kind = {});
  ExprId optional(ExprId part) { return repeat(part, 0, 1); }
  ExprId call(RuleId rule) { return add({.kind = Expr::Kind::call, .rule = rule}); }
  // Text that may be written as the special token that is spelt so, if there is one.
  ExprId tag(std::string_view text) {
    return add({.kind = Expr::Kind::tag, .text = std::string(text)});
  }
  // Text that contains none of the tags, which begin with '<' and have no other '<': so many whole
  // characters; any bytes; or whatever a model writes unconstrained.
  ExprId text_without(std::vector<std::string> tags, int64_t min = 0, int64_t max = kUnbounded) {
    return add({.kind = Expr::Kind::text_without, .tags = std::move(tags), .min = min, .max = max});
  }
  ExprId bytes_without(std::vector<std::string> tags) {
    return add({.kind = Expr::Kind::text_without, .tags = std::move(tags), .any_bytes = true});
  }
  ExprId anything_without(std::vector<std::string> tags) {
    return add({.kind = Expr::Kind::text_without,
                .tags = std::move(tags),
                .any_bytes = true,
                .free = true});
  }

  RuleId add_rule(std::string name);
  void define(RuleId rule, ExprId body) { rules_[size_t(rule)].body = body; }

  const Expr& operator[](ExprId id) const { return exprs_[size_t(id)]; }
  ExprId body(RuleId rule) const { return rules_[size_t(rule)].body; }
  const std::string& name(RuleId rule) const { return rules_[size_t(rule)].name; }
  size_t rule_count() const { return rules_.size(); }
  size_t expr_count() const { return exprs_.size(); }

 private:
  struct Rule {
    std::string name;  // for errors
    ExprId body = {};
  };

  ExprId add(Expr expr);
  ExprId merged(std::vector<std::string>& sorted, size_t begin, size_t end, size_t from);

  std::vector<Expr> exprs_;
  std::vector<Rule> rules_;
};

}  // namespace slip
