// Anthropic's messages, tools and options as the rest of the server knows them.
#pragma once

#include "server/api_context.h"
#include "server/chat_request.h"

namespace slip {

// `counting`: only the prompt matters, max_tokens may be missing.
ApiResult<ChatRequest> read_anthropic_request(ApiContext& context, const JsonObject& body,
                                              bool counting);

}  // namespace slip
