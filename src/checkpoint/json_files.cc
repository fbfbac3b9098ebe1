#include "checkpoint/json_files.h"

#include <utility>

#include "base/files.h"
#include "checkpoint/json_visitor.h"

namespace slip {

Result<JsonObject> parse_json_object(std::string_view text, const std::string& source) {
  SLIP_TRY_STATUS(refuse_repeated_keys(text, source));
  SLIP_TRY(Json value, parse_json(text, source));
  if (!value.is_object())
    return error(source, ": expected a JSON object, found ", describe_json_kind(value));
  return std::move(value.get_object());
}

Result<JsonObject> read_json_object(const std::filesystem::path& path) {
  // AutoRound writes a rule per module: megabytes for a model with many experts, never this much.
  constexpr uint64_t kLimit = 64u << 20;
  SLIP_TRY(const std::string text, read_text_file(path, kLimit));
  return parse_json_object(text, path.string());
}

Result<JsonObject> read_config_json(const std::filesystem::path& folder) {
  Result<JsonObject> config = read_json_object(folder / "config.json");
  std::error_code code;
  if (!config.ok() && !std::filesystem::exists(folder / "config.json", code))
    return error(config.failure().message,
                 "; expected a folder as published on Hugging Face, with config.json");
  return config;
}

}  // namespace slip
