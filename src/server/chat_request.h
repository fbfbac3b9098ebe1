// A conversation to be answered, whichever protocol it came in: messages and tools are in OpenAI's
// shape.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/api_answer_options.h"

namespace slip {

struct ToolUse {
  enum class Kind : uint8_t { none, automatic, required, named };
  Kind kind = Kind::automatic;
  std::string name;
  std::optional<std::vector<std::string>> allowed{};  // the others are as if they were not there
};

// Whether the answer has to be a call.
inline bool must_call_tools(const ToolUse& use) {
  return use.kind == ToolUse::Kind::required || use.kind == ToolUse::Kind::named;
}

struct ChatRequest {
  std::string model;
  JsonArray messages;
  std::string_view field = "messages";  // what the client calls them
  JsonArray tools;
  ToolUse tool_use;
  bool parallel_tool_calls = true;
  JsonObject template_flags;
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  int64_t thinking_budget = -1;  // tokens of thought; -1: no limit
  // An answer longer than the context has room for: shortened, or refused.
  bool shorten_to_fit = false;
  AnswerOptions options;
};

// reasoning_effort and its like. What the client wrote into the template's flags wins.
void set_effort(ChatRequest& request, const std::string& effort);
void set_thinking(ChatRequest& request, bool think);

}  // namespace slip
