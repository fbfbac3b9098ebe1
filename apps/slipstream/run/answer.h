// One answer of a model, from token ids to its parts.
#pragma once

#include <string>

#include "base/json.h"
#include "engine/generate.h"
#include "slipstream/run/printer.h"

namespace slip {

struct RunAnswer {
  GenerateResult result;
  std::string reasoning;
  std::string content;
  JsonArray tool_calls;  // {"type": "function", "function": {"name", "arguments"}}

  bool empty() const { return content.empty() && tool_calls.empty(); }
  // As a message of a conversation.
  JsonObject message() const;
};

struct RunAnswerOptions {
  // Plain text is not searched for thoughts and tool calls.
  bool plain_text = false;
  bool starts_in_thoughts = false;
};

// Prints while it generates. Ctrl-C (InterruptScope) and a reader that has gone away end it: the
// answer so far comes back, unless the prompt was not read yet, which is an error. So are logits
// that are not numbers.
Result<RunAnswer> make_answer(Session& session, const Tokenizer* tokenizer,
                              const GenerateRequest& request, const RunAnswerOptions& options,
                              AnswerPrinter& printer);

}  // namespace slip
