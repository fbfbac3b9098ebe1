#include "server/anthropic_messages.h"

#include <utility>

#include "server/anthropic_request.h"
#include "server/anthropic_writer.h"
#include "server/chat_plan.h"
#include "server/openai_shapes.h"

namespace slip {

ApiStatus answer_anthropic_messages(ApiContext& context, const HttpRequest& http,
                                    const std::shared_ptr<HttpReply>& reply) {
  SLIP_API_TRY(const JsonObject body, read_body(http));
  SLIP_API_TRY(ChatRequest request, read_anthropic_request(context, body, false));
  SLIP_API_TRY(ChatPlan plan, plan_chat(context, request, http.salt));
  start_exchange(*plan.answerer, reply,
                 make_anthropic_writer(*reply, {.id = random_id("msg_"),
                                                .model = plan.model,
                                                .stream = request.options.stream,
                                                .prompt_tokens = int64_t(plan.prompt.size())}),
                 std::move(plan.choices));
  return {};
}

ApiStatus count_anthropic_tokens(ApiContext& context, const HttpRequest& http,
                                 const std::shared_ptr<HttpReply>& reply) {
  SLIP_API_TRY(const JsonObject body, read_body(http));
  SLIP_API_TRY(ChatRequest request, read_anthropic_request(context, body, true));
  SLIP_API_TRY(const std::string model, context.served_name(request.model));
  if (ApiStatus problem = settle_tools(request)) return problem;
  SLIP_API_TRY(const Prompt prompt, context.prompts.write(request));
  reply->send(200, "application/json", dump_json(JsonObject{{"input_tokens", prompt.ids.size()}}));
  return {};
}

}  // namespace slip
