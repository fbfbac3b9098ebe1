// From a conversation to requests for the engine.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "server/api_context.h"
#include "server/api_exchange.h"
#include "server/chat_request.h"

namespace slip {

struct ChatPlan {
  std::string model;  // the name to reply with
  std::vector<int32_t> prompt;
  std::vector<PlannedChoice> choices;
  Answerer* answerer = nullptr;
};

// Checks and wraps the tools, and whether the one that must be called is there.
ApiStatus settle_tools(ChatRequest& request);

// `salt` keeps what is remembered of prompts apart.
ApiResult<ChatPlan> plan_chat(ApiContext& context, ChatRequest& request, const std::string& salt);

// For other kinds of prompts: the request without its constraint. Refuses what does not fit.
ApiResult<Request> plan_request(const ApiContext& context, const Prompt& prompt,
                                const AnswerOptions& options, const std::string& salt);

// 503 while there is no engine.
ApiResult<Answerer*> engine_of(const ApiContext& context);

}  // namespace slip
