// The endpoints that answer at once: models, properties, tokens.
#pragma once

#include <memory>

#include "server/api_context.h"

namespace slip {

// Each returns the error that is still to be sent, if there is one.
ApiStatus list_models(ApiContext& context, const HttpRequest& request,
                      const std::shared_ptr<HttpReply>& reply);
ApiStatus describe_model(ApiContext& context, const HttpRequest& request,
                         const std::shared_ptr<HttpReply>& reply);
ApiStatus describe_server(ApiContext& context, const HttpRequest& request,
                          const std::shared_ptr<HttpReply>& reply);
ApiStatus refuse_embeddings(ApiContext& context, const HttpRequest& request,
                            const std::shared_ptr<HttpReply>& reply);
ApiStatus tokenize_text(ApiContext& context, const HttpRequest& request,
                        const std::shared_ptr<HttpReply>& reply);
ApiStatus detokenize_ids(ApiContext& context, const HttpRequest& request,
                         const std::shared_ptr<HttpReply>& reply);

}  // namespace slip
