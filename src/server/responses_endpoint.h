// POST /v1/responses, without memory: every request brings its whole conversation.
#pragma once

#include <memory>

#include "server/api_context.h"

namespace slip {

// The error, if there is one, is still to be sent.
ApiStatus answer_responses(ApiContext& context, const HttpRequest& http,
                           const std::shared_ptr<HttpReply>& reply);

}  // namespace slip
