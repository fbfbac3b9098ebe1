// The parts that JSON is made of. Each is made once, so that what is known about its tokens serves
// every place it occurs at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/rules.h"
#include "grammar/utf8_ranges.h"

namespace slip {

// More digits are never written: a model could go on for ever.
inline constexpr int kMaxIntegerDigits = 18;
inline constexpr int kMaxFractionDigits = 17;

class JsonRules {
 public:
  explicit JsonRules(Rules& rules);

  Rules& rules() { return rules_; }

  // Schemas that are made of parts of others, alternatives and references first of all, are copies:
  // so many bytes of JSON more. An error if those of one constraint are too many.
  Status count_copied(size_t bytes);

  // Nothing, a space, or a line break with some indentation; never more.
  ExprId space() { return rules_.call(space_); }
  // Any value; objects and arrays nest one call per level.
  ExprId value() { return rules_.call(value_); }
  ExprId object() { return rules_.call(object_); }
  ExprId string() { return rules_.call(string_); }
  ExprId number() { return rules_.call(number_); }
  ExprId integer() { return rules_.call(integer_); }
  ExprId boolean() { return rules_.literals({"true", "false"}); }

  // A string of so many characters.
  ExprId string(int64_t min, int64_t max);
  // What `inner`, spelt as in a JSON string, describes, in quotes.
  ExprId quoted(ExprId inner);
  // "key": `value`
  ExprId member(const std::string& key, ExprId value);
  ExprId member(ExprId key, ExprId value);
  // A key, in quotes, that is none of these.
  Result<ExprId> other_key(const std::vector<std::string>& keys);
  // The same without quotes, of these characters, which need no escapes. `kind`: theirs, if any.
  Result<ExprId> other_name(const std::vector<std::string>& keys, const CharSet& characters,
                            int64_t longest, std::optional<TextKind> kind);

 private:
  ExprId json_text(int64_t min, int64_t max);

  Rules& rules_;
  size_t copied_ = 0;
  ExprId character_;
  RuleId space_;
  RuleId string_;
  RuleId number_;
  RuleId integer_;
  RuleId value_;
  RuleId object_;
};

}  // namespace slip
