// The items and options of OpenAI's responses endpoint as the rest of the server knows them.
#pragma once

#include "server/api_context.h"
#include "server/chat_request.h"
#include "server/responses_tools.h"

namespace slip {

struct ResponsesRequest {
  ChatRequest chat;
  ResponsesTools tools;
};

ApiResult<ResponsesRequest> read_responses_request(ApiContext& context, const JsonObject& body);

// The members of a request that its response repeats.
JsonObject responses_echo(const JsonObject& body);

}  // namespace slip
