// Reads the members of a JSON object that a client sent: typed, within limits, null like absent.
// The first thing that is wrong is remembered, and so is which members nobody asked for.
#pragma once

#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/api_error.h"

namespace slip {

// A member that is a text; empty if there is none.
std::string_view text_member(const JsonObject& object, std::string_view key);

template <class T>
struct Limits {
  T least = std::numeric_limits<T>::lowest();
  T most = std::numeric_limits<T>::max();
};

class RequestFields {
 public:
  // `object` must outlive this. `path` is how clients call it: "stream_options", or empty.
  explicit RequestFields(const JsonObject& object, std::string path = "");

  // Each is empty if the member is absent, null or wrong.
  const Json* value(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  std::optional<int64_t> integer(std::string_view key, const Limits<int64_t>& limits = {});
  std::optional<double> number(std::string_view key, const Limits<double>& limits = {});
  std::optional<std::string> text(std::string_view key);
  const JsonArray* list(std::string_view key);
  const JsonObject* object(std::string_view key);
  std::optional<std::string> one_of(std::string_view key,
                                    std::initializer_list<std::string_view> choices);
  // A text, or a list of at most `most` texts; empty texts are left out.
  std::vector<std::string> texts(std::string_view key, size_t most);

  // A list of token ids below `vocabulary`: a member, or a list that was found under `key`.
  std::vector<int32_t> token_ids(std::string_view key, int64_t vocabulary);
  std::vector<int32_t> token_ids(std::string_view key, const JsonArray& list, int64_t vocabulary);

  // Members that mean nothing here.
  void ignore(std::initializer_list<std::string_view> keys);

  // "messages" -> "stream_options.messages".
  std::string path_of(std::string_view key) const;

  void fail(std::string_view key, std::string message);
  void fail(ApiError error);
  const std::optional<ApiError>& failure() const { return failure_; }

  std::vector<std::string> unread() const;

 private:
  void fail_kind(std::string_view key, std::string_view expected, const Json& found);

  const JsonObject& object_;
  std::string path_;
  std::set<std::string, std::less<>> read_;
  std::optional<ApiError> failure_;
};

}  // namespace slip
