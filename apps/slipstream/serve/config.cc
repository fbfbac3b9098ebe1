#include "slipstream/serve/config.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/files.h"
#include "base/json.h"

namespace slip {
namespace {

std::string flag_name(std::string_view key) {
  std::string name(key);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

Result<std::string> value_text(const Json& value, const std::string& key) {
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_bool() || value.is_number()) return dump_json(value);
  return error("\"", key, "\" is ", describe_json_kind(value),
               ", not a text, a number, a boolean or a list of these");
}

Result<Flags::Settings> settings_of(const JsonObject& object) {
  Flags::Settings settings;
  for (const auto& entry : object) {
    const std::string key(entry.key());
    const JsonArray single{entry.value()};
    for (const Json& value : entry.value().is_array() ? entry.value().get_array() : single) {
      SLIP_TRY(std::string text, value_text(value, key));
      settings.emplace_back(flag_name(key), std::move(text));
    }
  }
  return settings;
}

}  // namespace

Result<Flags::Settings> parse_config(std::string_view text, const std::string& source) {
  if (text.find_first_not_of(" \t\r\n") == text.find('{') &&
      text.find('{') != std::string_view::npos) {
    SLIP_TRY(const Json json, parse_json(text, source));
    if (Result<Flags::Settings> settings = settings_of(json.as_object()); settings.ok())
      return settings;
    else
      return std::move(settings).failure().in(source);
  }
  Flags::Settings settings;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line[0] == '#') continue;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || trimmed(line.substr(0, equals)).empty())
      return error(source, " line ", number, ": expected NAME = VALUE");
    std::string_view value = trimmed(line.substr(equals + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    settings.emplace_back(flag_name(trimmed(line.substr(0, equals))), value);
  }
  return settings;
}

Result<Flags::Settings> read_config_file(const std::string& path) {
  constexpr uint64_t kLongest = 1 << 20;
  SLIP_TRY(const std::string text, read_text_file(path, kLongest));
  return parse_config(text, path);
}

}  // namespace slip
