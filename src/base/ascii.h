// Small things done to text from outside, byte by byte: what is not ASCII stays as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slip {

// split("a,b,,c", ','): "a", "b", "", "c".
std::vector<std::string_view> split(std::string_view text, char separator);

// Without blanks and line ends around it.
std::string_view trimmed(std::string_view text);

std::string lower_ascii(std::string_view text);

bool equal_ignoring_case(std::string_view a, std::string_view b);

// Digits alone, and no more than fit.
std::optional<uint64_t> parse_decimal(std::string_view text);

// "%2F" -> "/"; a percent sign without two digits behind it stays.
std::string percent_decoded(std::string_view text);

}  // namespace slip
