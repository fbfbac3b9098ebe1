#include "server/api_lists.h"

#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "server/chat_plan.h"
#include "server/openai_chat.h"

namespace slip {
namespace {

// As vLLM and llama.cpp describe models, in one.
JsonObject model_object(const ApiContext& context, const std::string& name) {
  return {{"id", name},
          {"object", "model"},
          {"created", context.model.created},
          {"owned_by", "slipstream"},
          {"root", context.model.names[0]},
          {"max_model_len", context.context()},
          {"meta", JsonObject{{"n_ctx", context.context()},
                              {"n_ctx_train", context.model.context},
                              {"n_vocab", context.vocabulary()}}}};
}

void send_json(HttpReply& reply, const JsonObject& body) {
  reply.send(200, "application/json", dump_json(body));
}

ApiResult<std::vector<int32_t>> tokens_of(ApiContext& context, const JsonObject& body) {
  if (body.contains("messages")) {
    SLIP_API_TRY(ChatRequest request, read_openai_chat(context, body));
    if (ApiStatus problem = settle_tools(request)) return std::move(*problem);
    SLIP_API_TRY(Prompt prompt, context.prompts.write(request));
    return std::move(prompt.ids);
  }
  RequestFields fields(body);
  const std::string_view name = body.contains("content") ? "content" : "prompt";
  const std::optional<std::string> text = fields.text(name);
  const bool special = fields.boolean("parse_special").value_or(true);
  if (!text) fields.fail(name, "'content', 'prompt' or 'messages' is missing");
  if (fields.failure()) return *fields.failure();
  if (ApiStatus problem = context.limit.check(*text, name)) return std::move(*problem);
  return context.model.tokenizer->encode(*text,
                                         special ? AddedTokens::kRecognise : AddedTokens::kAsText);
}

}  // namespace

ApiStatus list_models(ApiContext& context, const HttpRequest& /*request*/,
                      const std::shared_ptr<HttpReply>& reply) {
  JsonArray models;
  for (const std::string& name : context.model.names) models.push_back(model_object(context, name));
  send_json(*reply, {{"object", "list"}, {"data", std::move(models)}});
  return {};
}

ApiStatus describe_model(ApiContext& context, const HttpRequest& request,
                         const std::shared_ptr<HttpReply>& reply) {
  static constexpr std::string_view kPrefix = "/v1/models/";
  std::string_view rest = request.path;
  rest.remove_prefix(std::min(kPrefix.size(), rest.size()));
  SLIP_API_TRY(const std::string name, context.served_name(percent_decoded(rest)));
  send_json(*reply, model_object(context, name));
  return {};
}

ApiStatus describe_server(ApiContext& context, const HttpRequest& /*request*/,
                          const std::shared_ptr<HttpReply>& reply) {
  const SamplingOptions& sampling = context.model.defaults.sampling;
  send_json(
      *reply,
      {{"default_generation_settings",
        JsonObject{{"n_ctx", context.context()},
                   {"params", JsonObject{{"temperature", sampling.temperature},
                                         {"top_k", sampling.top_k},
                                         {"top_p", sampling.top_p},
                                         {"min_p", sampling.min_p},
                                         {"repeat_penalty", sampling.repetition_penalty},
                                         {"presence_penalty", sampling.presence_penalty},
                                         {"frequency_penalty", sampling.frequency_penalty}}}}},
       {"model_alias", context.model.names[0]},
       {"chat_template", context.model.chat_template ? context.model.chat_template->text() : ""},
       {"modalities", JsonObject{{"vision", false}, {"audio", false}}},
       {"build_info", "slipstream " + context.options.version}});
  return {};
}

ApiStatus refuse_embeddings(ApiContext& /*context*/, const HttpRequest& /*request*/,
                            const std::shared_ptr<HttpReply>& /*reply*/) {
  return not_offered("this server has no embedding model: it answers chats and completions only");
}

ApiStatus tokenize_text(ApiContext& context, const HttpRequest& request,
                        const std::shared_ptr<HttpReply>& reply) {
  SLIP_API_TRY(const JsonObject body, read_body(request));
  SLIP_API_TRY(const std::vector<int32_t> ids, tokens_of(context, body));
  JsonObject out = {{"tokens", JsonArray(ids.begin(), ids.end())},
                    {"count", ids.size()},
                    {"max_model_len", context.context()}};
  const Json* pieces = body.if_contains("with_pieces");
  if (pieces && pieces->is_bool() && pieces->get_bool()) {
    JsonArray tokens;
    for (const int32_t id : ids) {
      const int32_t one[] = {id};
      tokens.push_back(JsonObject{{"id", id}, {"piece", context.model.tokenizer->decode(one)}});
    }
    out["tokens"] = std::move(tokens);
  }
  send_json(*reply, out);
  return {};
}

ApiStatus detokenize_ids(ApiContext& context, const HttpRequest& request,
                         const std::shared_ptr<HttpReply>& reply) {
  SLIP_API_TRY(const JsonObject body, read_body(request));
  RequestFields fields(body);
  const std::vector<int32_t> ids = fields.token_ids("tokens", context.vocabulary());
  if (!body.contains("tokens")) fields.fail("tokens", "'tokens' is missing");
  if (fields.failure()) return *fields.failure();
  const std::string text = context.model.tokenizer->decode(ids);
  send_json(*reply, {{"content", text}, {"prompt", text}});
  return {};
}

}  // namespace slip
