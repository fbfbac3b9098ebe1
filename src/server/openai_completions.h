// POST /v1/completions.
#pragma once

#include <memory>

#include "server/api_context.h"

namespace slip {

// The error, if there is one, is still to be sent.
ApiStatus answer_openai_completion(ApiContext& context, const HttpRequest& http,
                                   const std::shared_ptr<HttpReply>& reply);

}  // namespace slip
