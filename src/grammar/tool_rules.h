// Tool calls in the form that a model writes and text/tool_calls.h reads.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "grammar/json_rules.h"
#include "text/output_format.h"

namespace slip {

// A call of one of the tools, with `parallel` several of them. Schemas are hints, followed as far
// as possible, unless `strict` or the tool's own "strict" says otherwise.
//   tags:   "<tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n...</function>\n
//           </tool_call>". Parameters come in the schema's order; text is written as it is, all
//           other values as JSON.
//   braces: "<|tool_call>call:NAME{KEY:VALUE,...}<tool_call|>". See tool_rules_braces.h.
Result<ExprId> add_tool_calls(JsonRules& json, const OutputFormat& format, const JsonArray& tools,
                              bool parallel, bool strict);

}  // namespace slip
