// JSON files that must be objects: config.json and its neighbours.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace slip {

// A JSON object without repeated keys at any level; anything else is an error.
Result<JsonObject> parse_json_object(std::string_view text, const std::string& source);
Result<JsonObject> read_json_object(const std::filesystem::path& path);

// `folder`/config.json.
Result<JsonObject> read_config_json(const std::filesystem::path& folder);

}  // namespace slip
