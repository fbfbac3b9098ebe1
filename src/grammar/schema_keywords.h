// What is done with each keyword of JSON schemas, and small readers of their values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace slip {

enum class KeywordUse {
  followed,
  annotation,   // says nothing about which values fit
  unsupported,  // restricts values in a way that is not implemented
  unknown,
};
KeywordUse keyword_use(std::string_view keyword);

// Which types a schema's values may have.
struct TypeSet {
  bool null = false;
  bool boolean = false;
  bool integer = false;
  bool number = false;  // with integers
  bool string = false;
  bool array = false;
  bool object = false;

  static TypeSet all() { return {true, true, true, true, true, true, true}; }
  bool contains(const Json& value) const;
  bool empty() const {
    return !(null || boolean || integer || number || string || array || object);
  }
};

// Of the keyword "type"; where that is missing, of the keywords that speak of one type only, and
// where there are none, all.
Result<TypeSet> schema_types(const JsonObject& schema);

// The values of "enum" or "const" that have the schema's type. Unless `lenient`, fails where other
// keywords would have to hold of them.
Result<JsonArray> listed_values(const JsonObject& schema, bool lenient);

// What the parameters of a tool that are not named have to fit; null: there are none. Unless
// `strict`, a schema that names none at all leaves them open.
const Json* other_parameters(const JsonObject& schema, bool strict);

// A count such as minLength. Missing: nullopt.
Result<std::optional<int64_t>> count_keyword(const JsonObject& schema, std::string_view keyword);

// `path` with "/step" behind it. Long paths end in "/...": every part of a schema keeps its own.
std::string below(const std::string& path, std::string_view step);
// "schema at #/properties/a: ..."
Error at_path(Error failure, const std::string& path);

std::string_view text_of(const Json& string);

}  // namespace slip
