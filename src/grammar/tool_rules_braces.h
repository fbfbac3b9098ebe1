// Tool calls as Gemma 4 writes them.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "grammar/json_rules.h"
#include "text/output_format.h"

namespace slip {

// "<|tool_call>call:NAME{KEY:VALUE,...}<tool_call|>" of one of the tools, with `parallel` several
// of them. Members come in the order that the model knows from its prompts: by key, whatever the
// case. Texts stand between two quote tokens; what a schema says about their characters is not
// followed, and refused where the tool is strict.
Result<ExprId> add_brace_calls(JsonRules& json, const OutputFormat& format, const JsonArray& tools,
                               bool parallel, bool strict);

}  // namespace slip
