#include "server/api.h"

#include <utility>

#include "server/anthropic_messages.h"
#include "server/api_context.h"
#include "server/api_lists.h"
#include "server/openai_chat.h"
#include "server/openai_completions.h"
#include "server/responses_endpoint.h"

namespace slip {

Api::Api(ServedModel model, ApiOptions options)
    : context_(std::make_unique<ApiContext>(std::move(model), std::move(options))) {}
Api::~Api() = default;

void Api::attach(Answerer* answerer) { context_->answerer.store(answerer); }

std::vector<ApiRoute> Api::routes() {
  // What an endpoint does: replies, or returns the error for its protocol's shape.
  using Endpoint =
      ApiStatus (*)(ApiContext&, const HttpRequest&, const std::shared_ptr<HttpReply>&);
  using SendError = void (*)(HttpReply&, const ApiError&);
  const auto handler = [this](Endpoint endpoint, SendError send_error) -> HttpHandler {
    return [context = context_.get(), endpoint, send_error](
               const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
      if (const ApiStatus error = endpoint(*context, request, reply)) send_error(*reply, *error);
    };
  };
  const auto openai = [&](Endpoint endpoint) { return handler(endpoint, send_openai_error); };
  const auto anthropic = [&](Endpoint endpoint) { return handler(endpoint, send_anthropic_error); };
  return {
      {"POST", "/v1/chat/completions", openai(answer_openai_chat)},
      {"POST", "/v1/completions", openai(answer_openai_completion)},
      {"POST", "/v1/responses", openai(answer_responses)},
      {"POST", "/v1/messages", anthropic(answer_anthropic_messages)},
      {"POST", "/v1/messages/count_tokens", anthropic(count_anthropic_tokens)},
      {"POST", "/v1/embeddings", openai(refuse_embeddings), true},
      {"POST", "/tokenize", openai(tokenize_text)},
      {"POST", "/detokenize", openai(detokenize_ids)},
      {"GET", "/v1/models", openai(list_models), true},
      {"GET", "/v1/models/*", openai(describe_model), true},
      {"GET", "/props", openai(describe_server), true},
  };
}

}  // namespace slip
