// Small things done to text from outside, byte by byte: what is not ASCII stays as it is.
#pragma once

#include <string>
#include <string_view>

namespace slip {

// Without blanks and line ends around it.
std::string_view trimmed(std::string_view text);

std::string lower_ascii(std::string_view text);

// "%2F" -> "/"; a percent sign without two digits behind it stays.
std::string percent_decoded(std::string_view text);

}  // namespace slip
