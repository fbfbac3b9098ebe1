// From what a client asks for (JSON of a schema, a regular expression, one of some texts, tool
// calls) to a Constraint that only lets such answers through.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "grammar/constraint.h"
#include "grammar/token_index.h"
#include "text/reasoning.h"

namespace slip {

// Whether a model may, or has to, call tools.
enum class ToolChoice {
  automatic,  // free text; a call, once begun, has the right form
  required,   // nothing but calls, of any of the tools
};

struct ConstraintSpec {
  enum class Kind {
    json_object,  // any JSON object
    json_schema,  // JSON that `schema` accepts
    regex,        // text that `text` matches from its beginning to its end
    choice,       // one of `choices`
    grammar,      // text that `text`, a grammar in GBNF, derives from its rule "root"
    tool_calls,   // calls of `tools` in the form that the model writes
  };
  Kind kind = Kind::json_object;

  Json schema = {};
  // Of a schema, or of tools where there is none: objects have no properties but the named ones
  // unless the schema says so.
  bool strict = false;
  std::string text = {};
  std::vector<std::string> choices = {};

  // As clients send them: {"type": "function", "function": {...}}, or the inner object alone, with
  // "parameters" or "input_schema". For a named tool pass that one alone and `required`. Beside
  // another form calls of them may stand instead of it.
  JsonArray tools = {};
  ToolChoice tool_choice = ToolChoice::automatic;
  bool parallel_calls = true;

  // In the model's thoughts all but the end of the turn is free until they are closed, or a tool
  // call begins where there are tools.
  Thoughts thoughts = Thoughts::none;
};

// `stop_ids` end the turn: allowed exactly where the answer may end. A request that asks for
// something unsupported or too large gets an error that names the keyword and its place, or the
// limit. The constraint and its clones are for one thread at a time.
Result<std::unique_ptr<Constraint>> make_constraint(const ConstraintSpec& spec,
                                                    std::shared_ptr<const TokenIndex> tokens,
                                                    std::span<const int32_t> stop_ids);

}  // namespace slip
