#include "server/openai_chat.h"

#include <utility>

#include "server/chat_plan.h"
#include "server/openai_chat_writer.h"

namespace slip {
namespace {

// The names under which servers offer the same thing.
void read_thinking(RequestFields& fields, ChatRequest& request) {
  for (const std::string_view name :
       {"thinking_token_budget", "reasoning_budget_tokens", "reasoning_budget", "thinking_budget"})
    if (const auto budget = fields.integer(name, {-1, 1 << 30})) request.thinking_budget = *budget;
  if (const JsonObject* thinking = fields.object("thinking")) {
    RequestFields inner(*thinking, "thinking");
    const auto type = inner.one_of("type", {"enabled", "disabled", "adaptive"});
    if (type) set_thinking(request, *type != "disabled");
    if (const auto budget = inner.integer("budget_tokens", {0, 1 << 30}))
      request.thinking_budget = *budget;
    if (inner.failure()) fields.fail(*inner.failure());
  }
  if (const auto think = fields.boolean("enable_thinking")) set_thinking(request, *think);
  if (const auto effort = fields.one_of(
          "reasoning_effort", {"none", "minimal", "low", "medium", "high", "xhigh", "max"}))
    set_effort(request, *effort);
}

// {"type": "function", "function": {"name": ".."}}, or without the inner object; empty if neither.
std::string function_name(const JsonObject& function) {
  const Json* inner = function.if_contains("function");
  return std::string(
      text_member(inner && inner->is_object() ? inner->get_object() : function, "name"));
}

// In chats the members stand one level deeper than in responses. What is neither a function nor a
// tool that takes a text is not offered here, so it may be allowed without effect.
ToolUse read_allowed_tools(RequestFields& fields, const JsonObject& choice) {
  const Json* wrapped = choice.if_contains("allowed_tools");
  RequestFields inner(wrapped && wrapped->is_object() ? wrapped->get_object() : choice,
                      "tool_choice");
  ToolUse use;
  use.allowed.emplace();
  if (inner.one_of("mode", {"auto", "required"}) == "required") use.kind = ToolUse::Kind::required;
  const JsonArray* tools = inner.list("tools");
  if (!tools) inner.fail("tools", "'tool_choice' allows 'tools', but has no list of them");
  bool others = false;
  for (const Json& tool : tools ? *tools : JsonArray()) {
    const JsonObject function = tool.is_object() ? tool.get_object() : JsonObject();
    const std::string_view type = text_member(function, "type");
    if (!type.empty() && type != "function" && type != "custom") {
      others = true;
      continue;
    }
    use.allowed->push_back(function_name(function));
    if (use.allowed->back().empty()) inner.fail("tools", "an allowed tool must have a 'name'");
  }
  if (others && use.allowed->empty()) use.kind = ToolUse::Kind::automatic;
  if (inner.failure()) fields.fail(*inner.failure());
  return use;
}

}  // namespace

ToolUse read_tool_choice(RequestFields& fields) {
  const Json* choice = fields.value("tool_choice");
  if (!choice) return {};
  if (choice->is_string()) {
    const auto word = fields.one_of("tool_choice", {"none", "auto", "required", "any"});
    if (word == "none") return {ToolUse::Kind::none, ""};
    if (word == "required" || word == "any") return {ToolUse::Kind::required, ""};
    return {};
  }
  if (const JsonObject* object = choice->if_object()) {
    if (text_member(*object, "type") == "allowed_tools") return read_allowed_tools(fields, *object);
    if (std::string name = function_name(*object); !name.empty())
      return {ToolUse::Kind::named, std::move(name)};
  }
  fields.fail("tool_choice", "'tool_choice' must be 'none', 'auto', 'required' or name a function");
  return {};
}

ApiResult<ChatRequest> read_openai_chat(ApiContext& context, const JsonObject& body) {
  RequestFields fields(body);
  ChatRequest request;
  request.model = fields.text("model").value_or("");
  if (const JsonArray* messages = fields.list("messages"))
    request.messages = *messages;
  else
    fields.fail("messages", "'messages' is missing");
  if (const JsonArray* tools = fields.list("tools")) request.tools = *tools;
  request.tool_use = read_tool_choice(fields);
  request.parallel_tool_calls = fields.boolean("parallel_tool_calls").value_or(true);
  if (const JsonObject* flags = fields.object("chat_template_kwargs"))
    request.template_flags = *flags;
  read_thinking(fields, request);
  request.continue_final_message = fields.boolean("continue_final_message").value_or(false);
  request.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);

  request.options =
      read_answer_options(fields, context.model.defaults.sampling, context.vocabulary());
  request.options.max_tokens =
      read_max_tokens(fields, {"max_tokens", "max_completion_tokens"}).value_or(-1);
  request.options.form = read_answer_form(fields);
  const bool logprobs = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", {0, kMostLogprobs});
  if (logprobs) request.options.top_logprobs = int(top.value_or(0));
  if (fields.failure()) return *fields.failure();
  context.note_unknown("/v1/chat/completions", fields.unread());
  return request;
}

ApiStatus answer_openai_chat(ApiContext& context, const HttpRequest& http,
                             const std::shared_ptr<HttpReply>& reply) {
  SLIP_API_TRY(const JsonObject body, read_body(http));
  SLIP_API_TRY(ChatRequest request, read_openai_chat(context, body));
  SLIP_API_TRY(ChatPlan plan, plan_chat(context, request, http.salt));
  start_exchange(*plan.answerer, reply,
                 make_chat_writer(*reply, {.identity = new_identity("chatcmpl-", plan.model),
                                           .options = request.options,
                                           .reasoning_field = context.options.reasoning_field,
                                           .tokenizer = context.model.tokenizer,
                                           .prompt = std::move(plan.prompt)}),
                 std::move(plan.choices));
  return {};
}

}  // namespace slip
