// POST /v1/chat/completions.
#pragma once

#include <memory>

#include "server/api_context.h"
#include "server/chat_request.h"

namespace slip {

// The request as a client of OpenAI writes it, with what vLLM's and llama.cpp's clients add.
ApiResult<ChatRequest> read_openai_chat(ApiContext& context, const JsonObject& body);

// The field tool_choice: "none", "auto", "required", or an object that names a function or lists
// those that are allowed.
ToolUse read_tool_choice(RequestFields& fields);

// The error, if there is one, is still to be sent.
ApiStatus answer_openai_chat(ApiContext& context, const HttpRequest& http,
                             const std::shared_ptr<HttpReply>& reply);

}  // namespace slip
