// Reading tokenizer.json field by field, with errors that name the field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace slip {

// The value under `key`, or null where it is absent or null.
const Json* find_field(const JsonObject& object, std::string_view key);

Result<const JsonObject*> require_object(const Json& value, const char* what);
Result<std::string_view> require_string(const JsonObject& object, const char* key);
Result<bool> read_flag(const JsonObject& object, const char* key, bool if_absent);

// A token id: an integer that is not negative and fits in int32.
Result<int32_t> read_token_id(const Json& value);

// Tables are sized by the highest id, so an id far above the number of tokens is a broken file and
// no reason to allocate. Published vocabularies have few gaps or none.
inline bool is_plausible_id(int32_t id, size_t tokens) { return size_t(id) < 2 * tokens + 65536; }

// The field "type" that says what a part of the pipeline is.
Result<std::string_view> read_type(const JsonObject& object);

// {"String": "..."} as Replace and Split have it; a regular expression is refused.
Result<std::string_view> read_literal_pattern(const JsonObject& object);

}  // namespace slip
