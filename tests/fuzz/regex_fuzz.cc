// Reads the input as a regular expression, as a schema's pattern and as a GBNF grammar, and writes
// some of an answer.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/grammar_walk.h"
#include "text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  using Kind = slip::ConstraintSpec::Kind;
  for (const Kind kind : {Kind::regex, Kind::grammar})
    slip::walk_constraint({.kind = kind, .text = text}, text);
  if (slip::is_valid_utf8(text))
    slip::walk_constraint({.kind = Kind::json_schema,
                           .schema = slip::JsonObject{{"type", "string"}, {"pattern", text}}},
                          text);
  return 0;
}
