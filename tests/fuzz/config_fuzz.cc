// Input: the text of config.json. Every kind of access is tried on every key, at every level.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "checkpoint/config_reader.h"

namespace {

// A reader of its own for each access: the first failure ends the useful part of a reader's life.
template <class Access>
void try_access(const slip::JsonObject& object, Access access) {
  slip::ConfigReader reader(object, "fuzz");
  access(reader);
  const auto result = reader.finish(0);
  slip::check(result.ok() || result.failure().message.starts_with("fuzz: "),
              "an error without its file");
}

void read(const slip::JsonObject& object) {
  for (const auto& item : object) {
    const std::string_view key(item.key().data(), item.key().size());
    try_access(object, [&](slip::ConfigReader& reader) {
      const int64_t value = reader.require_int(key, 1, 1000);
      slip::check(value >= 1 && value <= 1000, "an integer out of range");
    });
    try_access(object, [&](slip::ConfigReader& reader) {
      slip::check(std::isfinite(reader.double_or(key, 1)), "a number that is not finite");
    });
    try_access(object, [&](slip::ConfigReader& reader) { reader.bool_or(key, true); });
    try_access(object, [&](slip::ConfigReader& reader) { reader.string_or(key, "x"); });
    try_access(object, [&](slip::ConfigReader& reader) { reader.int_or_int_list(key); });
    try_access(object, [&](slip::ConfigReader& reader) { reader.require_string_list(key); });
    try_access(object, [&](slip::ConfigReader& reader) { reader.expect(key, "silu"); });
    try_access(object, [&](slip::ConfigReader& reader) { reader.expect(key, 0.5); });
    try_access(object, [&](slip::ConfigReader& reader) {
      reader.child(key).require_int("hidden_size");
      reader.reject_unread_keys({"dtype"});
    });
    if (item.value().is_object()) read(item.value().get_object());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto object =
      slip::parse_json_object(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (object.ok())
    read(object.value());
  else
    slip::check(object.failure().message.starts_with("fuzz: "), "an error without its file");
  return 0;
}
