// The named classes of regular expressions.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/utf8_ranges.h"

namespace slip {

CharSet any_but_line_ends();

// \d, \w, \s and their complements, which are ASCII but for \s, and escapes of one character.
std::optional<CharSet> escaped_class(char letter);

// L, M, N and their long names.
std::optional<CharSet> unicode_property(std::string_view name);

}  // namespace slip
