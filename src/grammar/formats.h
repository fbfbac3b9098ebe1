// The patterns of JSON schema's string formats.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace slip {

// A regular expression whose texts are all of the format, though it may not have all of them: no
// leap days, no rare spellings. None for formats that are not known, which then say nothing.
std::optional<std::string> format_pattern(std::string_view format);

}  // namespace slip
