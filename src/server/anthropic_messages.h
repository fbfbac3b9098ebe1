// POST /v1/messages and /v1/messages/count_tokens.
#pragma once

#include <memory>

#include "server/api_context.h"

namespace slip {

// Each returns the error that is still to be sent, if there is one.
ApiStatus answer_anthropic_messages(ApiContext& context, const HttpRequest& http,
                                    const std::shared_ptr<HttpReply>& reply);
ApiStatus count_anthropic_tokens(ApiContext& context, const HttpRequest& http,
                                 const std::shared_ptr<HttpReply>& reply);

}  // namespace slip
