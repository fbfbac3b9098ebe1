// JSON schemas (2020-12, and what clients still use of earlier drafts) as rules. Whatever is
// allowed fits the schema; where a schema leaves a choice of spelling, one is taken: properties in
// the schema's order, numbers without superfluous digits, at most one space or line break.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "grammar/json_rules.h"

namespace slip {

struct SchemaOptions {
  // Objects have no further properties unless the schema says so; unknown keywords are errors.
  bool closed_objects = false;
  // Keywords that cannot be followed are ignored: for tools, whose schemas are hints.
  bool lenient = false;
};

// The value that `schema` describes. `root` is what "#" in references means. Both are read only
// during the call. Errors name the keyword and the path to it.
Result<ExprId> add_schema(JsonRules& json, const Json& schema, const Json& root,
                          const SchemaOptions& options);

}  // namespace slip
