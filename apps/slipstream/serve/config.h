// A file of settings: NAME = VALUE lines, or a JSON object, with the names of the flags.
#pragma once

#include <string>

#include "slipstream/common/flags.h"

namespace slip {

Result<Flags::Settings> read_config_file(const std::string& path);

// Lists, in JSON or as repeated lines, become repeated settings. `source` starts errors.
Result<Flags::Settings> parse_config(std::string_view text, const std::string& source);

}  // namespace slip
