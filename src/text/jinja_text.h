// Python's str, over UTF-8: characters, white space, case, splitting, repr. A byte that is not
// valid UTF-8 counts as one character and is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slip::jinja {

struct Character {
  uint32_t code;
  size_t length;
};

// The character at the start of `text`, which is not empty.
Character decode_character(std::string_view text);

size_t count_characters(std::string_view text);
std::vector<std::string_view> characters_of(std::string_view text);

bool is_space(uint32_t code);

// Bytes of white space, as str.isspace() sees it, at either end.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

enum class Side { both, left, right };
// Without `characters`: white space.
std::string_view strip(std::string_view text, std::optional<std::string_view> characters,
                       Side side);

// str.split and str.rsplit; no separator: runs of white space. A negative limit is none.
std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator, int64_t limit);
std::vector<std::string_view> split_from_right(std::string_view text,
                                               std::optional<std::string_view> separator,
                                               int64_t limit);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends = false);

// A negative limit is none. An empty `from` matches between all characters.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        int64_t limit);
size_t count_occurrences(std::string_view text, std::string_view part);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title_case(std::string_view text);  // str.title
std::string title_case_words(
    std::string_view text);  // the filter: words are parted by -([{< and space

bool has_letters(std::string_view text);

std::string escape_html(std::string_view text);

// repr(): quotes as Python chooses them, escapes for what cannot be printed.
std::string quoted(std::string_view text);

}  // namespace slip::jinja
