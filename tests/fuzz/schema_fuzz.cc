// Reads the input as a JSON schema and writes some of an answer that it allows.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/grammar_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const slip::Result<slip::Json> schema = slip::parse_json(text, "fuzz");
  if (!schema.ok()) return 0;
  for (const bool strict : {false, true})
    slip::walk_constraint({.kind = slip::ConstraintSpec::Kind::json_schema,
                           .schema = schema.value(),
                           .strict = strict},
                          text);
  if (schema.value().is_array())
    slip::walk_constraint({.kind = slip::ConstraintSpec::Kind::tool_calls,
                           .tools = schema.value().get_array(),
                           .tool_choice = slip::ToolChoice::required},
                          text);
  return 0;
}
