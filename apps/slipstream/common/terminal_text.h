// Text as a terminal shows it: what counts as one character, and how many columns it takes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace slip {

// Where the character (grapheme cluster) at `at` ends; `text` is valid UTF-8 and `at` < its size.
size_t next_character(std::string_view text, size_t at);

// Where the character that ends at `at` begins; `at` > 0.
size_t previous_character(std::string_view text, size_t at);

// Columns of one character. Control characters take none.
int character_width(std::string_view character);

// Columns of all characters of `text`.
int display_width(std::string_view text);

// Escape sequences and control characters, but for line breaks and tabs, taken out: text from a
// model or a file must not move the cursor or retitle the window.
std::string without_controls(std::string_view text);

}  // namespace slip
