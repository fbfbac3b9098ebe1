// Typed reading of config.json: read what you use, refuse what you do not implement.
//
//   ConfigReader json(object, "config.json");
//   ConfigReader& text = json.child("text_config");
//   config.hidden = text.require_int("hidden_size");
//   text.expect("hidden_act", "silu");            // the only one we implement
//   json.reject_unread_keys({"transformers_version"});
//   return json.finish(config);
//
// The first failure is kept and comes out of finish(); after it, calls return harmless values, so
// that a reading function has no error handling of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "checkpoint/json_files.h"

namespace slip {

class ConfigReader {
 public:
  // The default upper limit, so that a value fits into an int.
  static constexpr int64_t kMaxInt = std::numeric_limits<int32_t>::max();

  // Borrows `object`. `source` ("config.json") starts every message.
  ConfigReader(const JsonObject& object, std::string source);
  ConfigReader(const ConfigReader&) = delete;
  ConfigReader& operator=(const ConfigReader&) = delete;

  // require_*: the key must be there. *_or: an absent key, or null, gives the fallback; a present
  // one must still be of the right type and in range.
  // Integers: 3 and 3.0 pass; 3.5, true, "3" do not. On failure the result is `min`.
  int64_t require_int(std::string_view key, int64_t min = 1, int64_t max = kMaxInt);
  int64_t int_or(std::string_view key, int64_t fallback, int64_t min = 0, int64_t max = kMaxInt);
  // Any finite number.
  double require_double(std::string_view key);
  double double_or(std::string_view key, double fallback);
  bool bool_or(std::string_view key, bool fallback);
  std::string require_string(std::string_view key);
  std::string string_or(std::string_view key, std::string_view fallback);
  std::vector<int64_t> require_int_list(std::string_view key, int64_t min = 0,
                                        int64_t max = kMaxInt);
  // One integer or a list of them, as in eos_token_id; empty if absent.
  std::vector<int64_t> int_or_int_list(std::string_view key, int64_t min = 0,
                                       int64_t max = kMaxInt);
  std::vector<std::string> require_string_list(std::string_view key);

  // Present and not null. Does not count as reading.
  bool has(std::string_view key) const;
  // For values of several types; null if absent. Counts as reading.
  const Json* raw(std::string_view key);
  // All keys in file order, for objects used as maps.
  std::vector<std::string> keys() const;

  // The reader of a nested object: the same one on every call, owned by this one. child() of a key
  // that is absent or not an object is a failure and gives an empty reader.
  ConfigReader& child(std::string_view key);
  ConfigReader* child_or_null(std::string_view key);

  // Refuses any value but `value`. An absent key or null passes: `value` must then be what absence
  // means in the reference implementation.
  void expect(std::string_view key, const Json& value);

  // Keys that were never read, here and in children that were opened, as "text_config.new_thing".
  // `ignored` lists plain keys (at any level) or full paths. Keys that start with "_" are notes of
  // the writer and never reported; nor is null, which asks for nothing.
  std::vector<std::string> unread_keys(const std::vector<std::string_view>& ignored) const;
  void reject_unread_keys(const std::vector<std::string_view>& ignored);

  // A failure that only the caller can see: "config.json: text_config.layer_types: <message>".
  void fail(std::string_view key, const std::string& message);
  bool failed() const { return first_error().has_value(); }

  template <class T>
  Result<T> finish(T value) const {
    if (failed()) return *first_error();
    return value;
  }

 private:
  ConfigReader(const JsonObject& object, const std::string& path, ConfigReader& root);

  const std::optional<Error>& first_error() const { return root_->error_; }
  std::string path_of(std::string_view key) const;
  // Marks the key as read; null for an absent key and for null.
  const Json* take(std::string_view key);
  // The same, but absence is a failure.
  const Json* require(std::string_view key, const std::string& expected);
  void wrong(std::string_view key, const std::string& expected, const Json& found);
  std::optional<int64_t> as_int(std::string_view key, const Json& value, int64_t min, int64_t max);
  std::optional<double> as_double(std::string_view key, const Json& value);
  std::optional<bool> as_bool(std::string_view key, const Json& value);
  std::optional<std::string> as_string(std::string_view key, const Json& value);
  std::vector<int64_t> as_int_list(std::string_view key, const Json& value, int64_t min,
                                   int64_t max);
  std::vector<std::string> as_string_list(std::string_view key, const Json& value);
  void collect_unread(const std::set<std::string_view>& ignored,
                      std::vector<std::string>& unread) const;

  const JsonObject* object_;
  std::string source_;
  std::string path_;    // "" or "text_config."
  ConfigReader* root_;  // holds the first error; may be this
  std::optional<Error> error_;
  std::set<std::string, std::less<>> read_;
  std::map<std::string, std::unique_ptr<ConfigReader>, std::less<>> children_;
};

}  // namespace slip
