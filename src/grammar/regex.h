// Regular expressions of the kind that JSON schemas and clients use (ECMAScript's), as a tree.
// Refused by name: what no automaton can do (lookaround, back references), word boundaries, flags.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/characters.h"
#include "grammar/rules.h"
#include "grammar/utf8_ranges.h"

namespace slip {

struct RegexNode {
  enum class Kind { characters, sequence, choice, repeat, begin_anchor, end_anchor };
  Kind kind;
  CharSet characters = {};
  std::vector<RegexNode> parts = {};  // of a repeat one
  int64_t min = 0;
  int64_t max = kUnbounded;
};

Result<RegexNode> parse_regex(std::string_view pattern);

enum class RegexMeaning {
  whole,  // the text as a whole fits; anchors at its ends say nothing new
  part,   // it fits anywhere in the text unless anchored
};

struct LengthRange {
  int64_t min;
  int64_t max;  // kUnbounded
};
// How many characters fitting texts have.
LengthRange regex_lengths(const RegexNode& regex, RegexMeaning meaning);

// Whether a fitting text may contain the character.
bool regex_may_contain(const RegexNode& regex, RegexMeaning meaning, uint32_t character);

// Refuses anchors anywhere but at the ends of the pattern's alternatives.
Result<ExprId> regex_expression(Rules& rules, const RegexNode& regex, RegexMeaning meaning,
                                Spelling spelling);

}  // namespace slip
