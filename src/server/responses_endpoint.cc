#include "server/responses_endpoint.h"

#include <utility>

#include "server/chat_plan.h"
#include "server/responses_request.h"
#include "server/responses_writer.h"

namespace slip {

ApiStatus answer_responses(ApiContext& context, const HttpRequest& http,
                           const std::shared_ptr<HttpReply>& reply) {
  SLIP_API_TRY(const JsonObject body, read_body(http));
  SLIP_API_TRY(ResponsesRequest request, read_responses_request(context, body));
  SLIP_API_TRY(ChatPlan plan, plan_chat(context, request.chat, http.salt));
  start_exchange(*plan.answerer, reply,
                 make_responses_writer(*reply, {.identity = new_identity("resp_", plan.model),
                                                .stream = request.chat.options.stream,
                                                .tools = std::move(request.tools),
                                                .echo = responses_echo(body)}),
                 std::move(plan.choices));
  return {};
}

}  // namespace slip
