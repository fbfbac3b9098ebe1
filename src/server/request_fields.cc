#include "server/request_fields.h"

#include <cmath>
#include <utility>

namespace slip {
namespace {

// A whole number, however it was written; empty if it is none or too large.
std::optional<int64_t> whole_number(const Json& value) {
  if (value.is_int64()) return value.get_int64();
  if (!value.is_double()) return std::nullopt;
  const double number = value.get_double();
  if (std::trunc(number) != number || std::abs(number) > 0x1p53) return std::nullopt;
  return int64_t(number);
}

template <class T>
std::string out_of_limits(std::string_view key, T value, const Limits<T>& limits) {
  const bool has_most = limits.most != std::numeric_limits<T>::max();
  if (!has_most) return cat("'", key, "' must be at least ", limits.least, ", but is ", value);
  return cat("'", key, "' must be between ", limits.least, " and ", limits.most, ", but is ",
             value);
}

template <class T>
bool within(T value, const Limits<T>& limits) {
  return value >= limits.least && value <= limits.most;  // false for NaN
}

}  // namespace

std::string_view text_member(const JsonObject& object, std::string_view key) {
  return text_or_empty(object.if_contains(key));
}

RequestFields::RequestFields(const JsonObject& object, std::string path)
    : object_(object), path_(std::move(path)) {}

const Json* RequestFields::value(std::string_view key) {
  read_.emplace(key);
  const Json* found = object_.if_contains(key);
  return found && !found->is_null() ? found : nullptr;
}

std::optional<bool> RequestFields::boolean(std::string_view key) {
  const Json* found = value(key);
  if (!found) return std::nullopt;
  if (found->is_bool()) return found->get_bool();
  fail_kind(key, "a boolean", *found);
  return std::nullopt;
}

std::optional<int64_t> RequestFields::integer(std::string_view key, const Limits<int64_t>& limits) {
  const Json* found = value(key);
  if (!found) return std::nullopt;
  const std::optional<int64_t> number = whole_number(*found);
  if (!number) {
    fail_kind(key, "an integer", *found);
    return std::nullopt;
  }
  if (within(*number, limits)) return number;
  fail(key, out_of_limits(path_of(key), *number, limits));
  return std::nullopt;
}

std::optional<double> RequestFields::number(std::string_view key, const Limits<double>& limits) {
  const Json* found = value(key);
  if (!found) return std::nullopt;
  if (!found->is_number()) {
    fail_kind(key, "a number", *found);
    return std::nullopt;
  }
  const auto number = found->to_number<double>();
  if (within(number, limits)) return number;
  fail(key, out_of_limits(path_of(key), number, limits));
  return std::nullopt;
}

std::optional<std::string> RequestFields::text(std::string_view key) {
  const Json* found = value(key);
  if (!found) return std::nullopt;
  if (found->is_string()) return std::string(found->get_string());
  fail_kind(key, "a string", *found);
  return std::nullopt;
}

const JsonArray* RequestFields::list(std::string_view key) {
  const Json* found = value(key);
  if (!found) return nullptr;
  if (found->is_array()) return &found->get_array();
  fail_kind(key, "a list", *found);
  return nullptr;
}

const JsonObject* RequestFields::object(std::string_view key) {
  const Json* found = value(key);
  if (!found) return nullptr;
  if (found->is_object()) return &found->get_object();
  fail_kind(key, "an object", *found);
  return nullptr;
}

std::optional<std::string> RequestFields::one_of(std::string_view key,
                                                 std::initializer_list<std::string_view> choices) {
  std::optional<std::string> chosen = text(key);
  if (!chosen) return std::nullopt;
  std::string all;
  for (const std::string_view choice : choices) {
    if (choice == *chosen) return chosen;
    all += cat(all.empty() ? "'" : ", '", choice, "'");
  }
  fail(key, cat("'", path_of(key), "' must be one of ", all));
  return std::nullopt;
}

std::vector<std::string> RequestFields::texts(std::string_view key, size_t most) {
  const Json* found = value(key);
  std::vector<std::string> all;
  const auto add = [&](const Json& item) {
    if (!item.is_string()) fail_kind(key, "a string or a list of strings", item);
    if (item.is_string() && !item.get_string().empty()) all.emplace_back(item.get_string());
  };
  if (!found) return all;
  if (!found->is_array()) {
    add(*found);
    return all;
  }
  if (found->get_array().size() > most) {
    fail(key, cat("'", path_of(key), "' has ", found->get_array().size(), " entries, at most ",
                  most, " are allowed"));
    return all;
  }
  for (const Json& item : found->get_array()) add(item);
  return all;
}

std::vector<int32_t> RequestFields::token_ids(std::string_view key, int64_t vocabulary) {
  const JsonArray* found = list(key);
  return found ? token_ids(key, *found, vocabulary) : std::vector<int32_t>();
}

std::vector<int32_t> RequestFields::token_ids(std::string_view key, const JsonArray& list,
                                              int64_t vocabulary) {
  std::vector<int32_t> ids;
  for (const Json& item : list) {
    const std::optional<int64_t> id = whole_number(item);
    if (!id || *id < 0 || *id >= vocabulary) {
      fail(key, cat("'", path_of(key), "' holds something that is no token id below ", vocabulary));
      return {};
    }
    ids.push_back(int32_t(*id));
  }
  return ids;
}

void RequestFields::ignore(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) read_.emplace(key);
}

std::string RequestFields::path_of(std::string_view key) const {
  if (path_.empty()) return std::string(key);
  return cat(path_, ".", key);
}

void RequestFields::fail(std::string_view key, std::string message) {
  fail(bad_request(std::move(message), path_of(key)));
}

void RequestFields::fail(ApiError error) {
  if (!failure_) failure_ = std::move(error);
}

void RequestFields::fail_kind(std::string_view key, std::string_view expected, const Json& found) {
  fail(key, cat("'", path_of(key), "' must be ", expected, ", but is ", describe_json_kind(found)));
}

std::vector<std::string> RequestFields::unread() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : object_)
    if (!read_.contains(std::string_view(key))) names.emplace_back(key);
  return names;
}

}  // namespace slip
