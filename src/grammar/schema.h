// JSON schemas (2020-12, and what clients still use of earlier drafts) as rules. Whatever is
// allowed fits the schema; where a schema leaves a choice of spelling, one is taken: properties in
// the schema's order, numbers without superfluous digits, at most one space or line break.
#pragma once

#include <cstdint>
#include <optional>

#include "base/function_ref.h"
#include "base/json.h"
#include "base/result.h"
#include "grammar/json_rules.h"
#include "grammar/regex.h"

namespace slip {

struct SchemaOptions {
  // Objects have no further properties unless the schema says so; unknown keywords are errors.
  bool closed_objects = false;
  // Keywords that cannot be followed are ignored: for tools, whose schemas are hints.
  bool lenient = false;
};

// The value that `schema` describes. `root` is what "#" in references means. Both are read only
// during the call, and have to pass check_depth(). Errors name the keyword and the path to it.
Result<ExprId> add_schema(JsonRules& json, const Json& schema, const Json& root,
                          const SchemaOptions& options);

// For values that are not written as JSON: `write` is asked for an expression of each schema that
// is left when references, allOf and alternatives have been followed.
using SchemaWriter = FunctionRef<Result<ExprId>(const JsonObject& schema)>;
Result<ExprId> add_schema(JsonRules& json, const Json& schema, const Json& root,
                          const SchemaOptions& options, SchemaWriter write);

// Refuses what is nested too deep to be walked through.
Status check_depth(const Json& schema);
// Refuses to go on where schemas have become too large.
Status check_expressions(const Rules& rules);

// What a schema says about the characters of a string.
struct StringForm {
  int64_t min = 0;
  int64_t max = kUnbounded;
  std::optional<RegexNode> regex = {};  // of "pattern" or "format"; implies the lengths
  RegexMeaning meaning = RegexMeaning::whole;
};
// `lenient`: without the pattern where that cannot be followed.
Result<StringForm> read_string_form(const JsonObject& schema, bool lenient);

}  // namespace slip
