// Expressions for characters and texts, as they are spelt in plain text or inside JSON strings.
#pragma once

#include <string>
#include <string_view>

#include "grammar/rules.h"
#include "grammar/utf8_ranges.h"

namespace slip {

enum class Spelling {
  plain,
  no_tags,      // plain, and no '<', with which tags begin
  json_string,  // quotes, backslashes and control characters escaped; the others never
};

// One character of the set.
ExprId one_character(Rules& rules, const CharSet& set, Spelling spelling);

// The character as it is spelt; a piece of UTF-8.
std::string spell(uint32_t code_point, Spelling spelling);

// Inside a JSON string: one character, however JSON allows to spell it.
ExprId any_json_character(Rules& rules);

// The text of a value as JSON, on one line and without spaces.
std::string compact_json(const Json& value);

}  // namespace slip
