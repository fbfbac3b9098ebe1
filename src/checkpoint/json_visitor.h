// JSON as a sequence of events, without a tree: headers and indexes of 122B checkpoints have
// 113,000 entries, and a tree would also hide repeated keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace slip {

using JsonScalar = std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string_view>;

// "null", "3", "\"text\"", for messages; long strings are cut.
std::string describe_json_scalar(const JsonScalar& value);

// Text from a file, fit for a message: control bytes as '?', long text cut.
std::string printable(std::string_view text);
// The same in quotes.
std::string quote_for_message(std::string_view text);

// An error stops the walk. String views are valid during the call only.
class JsonVisitor {
 public:
  virtual ~JsonVisitor() = default;
  virtual Status begin_object() = 0;
  virtual Status end_object() = 0;
  virtual Status begin_list() = 0;
  virtual Status end_list() = 0;
  virtual Status key(std::string_view name) = 0;
  virtual Status scalar(const JsonScalar& value) = 0;
};

// Walks over one JSON document; nesting deeper than 64 is refused. Errors, the visitor's too, start
// with `source`.
Status visit_json(std::string_view text, const std::string& source, JsonVisitor& visitor);

// Refuses an object that has a key twice: readers differ in which of the two they take.
Status refuse_repeated_keys(std::string_view text, const std::string& source);

}  // namespace slip
