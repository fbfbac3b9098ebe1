#include "checkpoint/config_reader.h"

#include <algorithm>
#include <cmath>

#include "checkpoint/json_visitor.h"

namespace slip {
namespace {

std::string describe(const Json& value) {
  switch (value.kind()) {
    case boost::json::kind::null: return "null";
    case boost::json::kind::bool_: return value.get_bool() ? "true" : "false";
    case boost::json::kind::int64: return cat(value.get_int64());
    case boost::json::kind::uint64: return cat(value.get_uint64());
    case boost::json::kind::double_: return cat(value.get_double());
    case boost::json::kind::string: return quote_for_message(json_view(value.get_string()));
    case boost::json::kind::array:
    case boost::json::kind::object: return describe_json_kind(value);
  }
  unreachable("boost::json::kind");
}

// Nothing for what is not an integer. 3.0 is one: Python writes it where a float was computed.
std::optional<int64_t> to_int(const Json& value) {
  constexpr double kExactIntegers = 9007199254740992.0;  // 2^53
  if (value.is_int64()) return value.get_int64();
  if (!value.is_double()) return std::nullopt;  // uint64 means above 2^63
  const double number = value.get_double();
  if (std::fabs(number) > kExactIntegers || number != std::floor(number)) return std::nullopt;
  return int64_t(number);
}

std::optional<double> to_double(const Json& value) {
  if (value.is_int64()) return double(value.get_int64());
  if (value.is_uint64()) return double(value.get_uint64());
  if (value.is_double() && std::isfinite(value.get_double())) return value.get_double();
  return std::nullopt;
}

std::string integer_range(int64_t min, int64_t max) {
  return cat("an integer from ", min, " to ", max);
}

bool same_value(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return to_double(a) && to_double(a) == to_double(b);
  return a == b;
}

}  // namespace

ConfigReader::ConfigReader(const JsonObject& object, std::string source)
    : object_(&object), source_(std::move(source)), root_(this) {}

ConfigReader::ConfigReader(const JsonObject& object, const std::string& path, ConfigReader& root)
    : object_(&object), source_(root.source_), path_(path), root_(&root) {}

int64_t ConfigReader::require_int(std::string_view key, int64_t min, int64_t max) {
  const Json* value = require(key, integer_range(min, max));
  return value ? as_int(key, *value, min, max).value_or(min) : min;
}

int64_t ConfigReader::int_or(std::string_view key, int64_t fallback, int64_t min, int64_t max) {
  const Json* value = take(key);
  return value ? as_int(key, *value, min, max).value_or(fallback) : fallback;
}

double ConfigReader::require_double(std::string_view key) {
  const Json* value = require(key, "a number");
  return value ? as_double(key, *value).value_or(0) : 0;
}

double ConfigReader::double_or(std::string_view key, double fallback) {
  const Json* value = take(key);
  return value ? as_double(key, *value).value_or(fallback) : fallback;
}

bool ConfigReader::bool_or(std::string_view key, bool fallback) {
  const Json* value = take(key);
  return value ? as_bool(key, *value).value_or(fallback) : fallback;
}

std::string ConfigReader::require_string(std::string_view key) {
  const Json* value = require(key, "a string");
  return value ? as_string(key, *value).value_or("") : "";
}

std::string ConfigReader::string_or(std::string_view key, std::string_view fallback) {
  const Json* value = take(key);
  return value ? as_string(key, *value).value_or(std::string(fallback)) : std::string(fallback);
}

std::vector<int64_t> ConfigReader::require_int_list(std::string_view key, int64_t min,
                                                    int64_t max) {
  const Json* value = require(key, "a list of integers");
  return value ? as_int_list(key, *value, min, max) : std::vector<int64_t>();
}

std::vector<int64_t> ConfigReader::int_or_int_list(std::string_view key, int64_t min, int64_t max) {
  const Json* value = take(key);
  if (!value) return {};
  if (value->is_array()) return as_int_list(key, *value, min, max);
  const auto single = as_int(key, *value, min, max);
  return single ? std::vector<int64_t>{*single} : std::vector<int64_t>();
}

std::vector<std::string> ConfigReader::require_string_list(std::string_view key) {
  const Json* value = require(key, "a list of strings");
  return value ? as_string_list(key, *value) : std::vector<std::string>();
}

bool ConfigReader::has(std::string_view key) const {
  const Json* value = object_->if_contains(key);
  return value && !value->is_null();
}

const Json* ConfigReader::raw(std::string_view key) {
  read_.emplace(key);
  return object_->if_contains(key);
}

std::vector<std::string> ConfigReader::keys() const {
  std::vector<std::string> result;
  for (const auto& item : *object_) result.emplace_back(item.key().data(), item.key().size());
  return result;
}

ConfigReader& ConfigReader::child(std::string_view key) {
  static const JsonObject kEmpty;
  if (ConfigReader* reader = child_or_null(key)) return *reader;
  require(key, "an object");  // absent, or child_or_null() has reported the wrong type
  std::unique_ptr<ConfigReader> reader(
      new ConfigReader(kEmpty, cat(path_, printable(key), "."), *root_));
  return *(children_[std::string(key)] = std::move(reader));
}

ConfigReader* ConfigReader::child_or_null(std::string_view key) {
  if (const auto place = children_.find(key); place != children_.end()) return place->second.get();
  const Json* value = take(key);
  if (!value) return nullptr;
  if (!value->is_object()) {
    wrong(key, "an object", *value);
    return nullptr;
  }
  std::unique_ptr<ConfigReader> reader(
      new ConfigReader(value->get_object(), cat(path_, printable(key), "."), *root_));
  return (children_[std::string(key)] = std::move(reader)).get();
}

void ConfigReader::expect(std::string_view key, const Json& value) {
  const Json* found = take(key);
  if (found && !same_value(*found, value))
    wrong(key, cat(describe(value), ", the only value implemented"), *found);
}

std::vector<std::string> ConfigReader::unread_keys(
    const std::vector<std::string_view>& ignored) const {
  std::vector<std::string> unread;
  collect_unread({ignored.begin(), ignored.end()}, unread);
  return unread;
}

void ConfigReader::reject_unread_keys(const std::vector<std::string_view>& ignored) {
  const std::vector<std::string> unread = unread_keys(ignored);
  if (unread.empty() || failed()) return;
  std::string list;
  for (const std::string& key : unread) list += cat(list.empty() ? "" : ", ", printable(key));
  root_->error_ = error(source_, ": expected only keys that this model uses, found ", list,
                        "; these may ask for something that is not implemented");
}

void ConfigReader::fail(std::string_view key, const std::string& message) {
  if (!failed()) root_->error_ = error(source_, ": ", path_, printable(key), ": ", message);
}

const Json* ConfigReader::take(std::string_view key) {
  const Json* value = raw(key);
  return value && !value->is_null() ? value : nullptr;
}

const Json* ConfigReader::require(std::string_view key, const std::string& expected) {
  const Json* value = take(key);
  if (!value) fail(key, cat("expected ", expected, ", found ", raw(key) ? "null" : "no such key"));
  return value;
}

void ConfigReader::wrong(std::string_view key, const std::string& expected, const Json& found) {
  fail(key, cat("expected ", expected, ", found ", describe(found)));
}

std::optional<int64_t> ConfigReader::as_int(std::string_view key, const Json& value, int64_t min,
                                            int64_t max) {
  const auto number = to_int(value);
  if (number && *number >= min && *number <= max) return number;
  wrong(key, integer_range(min, max), value);
  return std::nullopt;
}

std::optional<double> ConfigReader::as_double(std::string_view key, const Json& value) {
  const auto number = to_double(value);
  if (!number) wrong(key, "a finite number", value);
  return number;
}

std::optional<bool> ConfigReader::as_bool(std::string_view key, const Json& value) {
  if (value.is_bool()) return value.get_bool();
  wrong(key, "true or false", value);
  return std::nullopt;
}

std::optional<std::string> ConfigReader::as_string(std::string_view key, const Json& value) {
  if (value.is_string()) return std::string(json_view(value.get_string()));
  wrong(key, "a string", value);
  return std::nullopt;
}

std::vector<int64_t> ConfigReader::as_int_list(std::string_view key, const Json& value, int64_t min,
                                               int64_t max) {
  std::vector<int64_t> list;
  if (!value.is_array()) {
    wrong(key, "a list of integers", value);
    return list;
  }
  for (const Json& item : value.get_array()) {
    const auto number = as_int(cat(key, "[", list.size(), "]"), item, min, max);
    if (!number) return {};
    list.push_back(*number);
  }
  return list;
}

std::vector<std::string> ConfigReader::as_string_list(std::string_view key, const Json& value) {
  std::vector<std::string> list;
  if (!value.is_array()) {
    wrong(key, "a list of strings", value);
    return list;
  }
  for (const Json& item : value.get_array()) {
    auto text = as_string(cat(key, "[", list.size(), "]"), item);
    if (!text) return {};
    list.push_back(*std::move(text));
  }
  return list;
}

void ConfigReader::collect_unread(const std::set<std::string_view>& ignored,
                                  std::vector<std::string>& unread) const {
  for (const std::string& key : keys()) {
    const std::string path = path_ + key;
    if (key.starts_with('_') || ignored.contains(key) || ignored.contains(path)) continue;
    if (!read_.contains(key) && has(key)) unread.push_back(path);
    if (const auto place = children_.find(key); place != children_.end())
      place->second->collect_unread(ignored, unread);
  }
}

}  // namespace slip
