// Tool calls in the XML form that Qwen3.5 writes and text/tool_calls.h reads.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "grammar/json_rules.h"

namespace slip {

// "<tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n...</function>\n</tool_call>"
// of one of the tools, with `parallel` several of them. Parameters come in the schema's order; text
// is written as it is, all other values as JSON. Schemas are hints, followed as far as possible,
// unless `strict` or the tool's own "strict" says otherwise.
Result<ExprId> add_tool_calls(JsonRules& json, const JsonArray& tools, bool parallel, bool strict);

}  // namespace slip
