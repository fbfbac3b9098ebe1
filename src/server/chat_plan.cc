#include "server/chat_plan.h"

#include <algorithm>
#include <random>
#include <utility>

#include "server/chat_messages.h"

namespace slip {
namespace {

uint64_t random_seed() {
  thread_local std::mt19937_64 random(std::random_device{}());
  return random();
}

ApiError too_long(int64_t context, const Prompt& written, int64_t answer) {
  const auto prompt = int64_t(written.ids.size());
  ApiError error = bad_request(
      cat("This model's maximum context length is ", context, " tokens. However, you requested ",
          prompt + answer, " tokens (", prompt, " in the prompt, ", answer,
          " in the completion). Please reduce the length of the prompt or completion."),
      std::string(written.field));
  error.code = "context_length_exceeded";
  error.details = {{"n_prompt_tokens", prompt}, {"n_ctx", context}};
  return error;
}

// Models that have called tools before in a conversation do so again, with no tools in the prompt.
void forbid_calls(const ApiContext& context, SamplingOptions& sampling) {
  const Tokenizer& tokenizer = *context.model.tokenizer;
  if (const auto id = tokenizer.find(output_format_of(tokenizer).call_open))
    sampling.logit_bias.emplace_back(*id, -100.0f);
}

std::optional<OutputParser> parser_for(const ApiContext& context, const ChatRequest& request,
                                       Thoughts thoughts) {
  // Text of a given form is not searched for tags: calls may stand in its place, not in it.
  const bool has_form = request.options.form.kind != AnswerForm::Kind::text;
  if (has_form && request.tools.empty() && thoughts == Thoughts::none) return std::nullopt;
  auto calls = OutputParser::Calls::anywhere;
  if (has_form && !must_call_tools(request.tool_use)) calls = OutputParser::Calls::first;
  if (request.tools.empty()) calls = OutputParser::Calls::as_content;
  return OutputParser(output_format_of(*context.model.tokenizer), thoughts == Thoughts::begun,
                      request.tools, calls);
}

ApiStatus check_offered(const JsonArray& tools, const std::string& name) {
  const auto named = [&](const Json& tool) { return tool_name(tool) == name; };
  if (std::any_of(tools.begin(), tools.end(), named)) return std::nullopt;
  return bad_request(cat("'tool_choice' names the tool '", name, "', which is not in 'tools'"),
                     "tool_choice");
}

}  // namespace

ApiStatus settle_tools(ChatRequest& request) {
  SLIP_API_TRY(request.tools, normalised_tools(request.tools));
  const ToolUse& use = request.tool_use;
  if (use.allowed) {
    for (const std::string& name : *use.allowed)
      if (ApiStatus problem = check_offered(request.tools, name)) return problem;
    const auto hidden = [&](const Json& tool) {
      return std::ranges::find(*use.allowed, tool_name(tool)) == use.allowed->end();
    };
    JsonArray& tools = request.tools;
    tools.erase(std::remove_if(tools.begin(), tools.end(), hidden), tools.end());
  }
  switch (use.kind) {
    case ToolUse::Kind::none: request.tools.clear(); break;
    case ToolUse::Kind::automatic: break;
    case ToolUse::Kind::required:
      if (request.tools.empty()) return bad_request("there are no tools to choose", "tool_choice");
      break;
    case ToolUse::Kind::named: return check_offered(request.tools, use.name);
  }
  return std::nullopt;
}

ApiResult<Answerer*> engine_of(const ApiContext& context) {
  Answerer* engine = context.answerer.load();
  if (!engine) return unavailable("the model is being loaded");
  return engine;
}

ApiResult<Request> plan_request(const ApiContext& context, const Prompt& prompt,
                                const AnswerOptions& options, const std::string& salt) {
  const int64_t room = context.context();
  const auto length = int64_t(prompt.ids.size());
  const int64_t wanted = options.max_tokens < 0 ? 1 : options.max_tokens;
  if (length + wanted > room)
    return too_long(room, prompt, std::max<int64_t>(0, options.max_tokens));
  if (options.max_tokens >= 0 && options.min_tokens > options.max_tokens)
    return bad_request("'min_tokens' must not be above the limit on tokens", "min_tokens");
  Request request;
  request.prompt = prompt.ids;
  request.message_ends = prompt.message_ends;
  request.sampling = options.sampling;
  if (!options.has_seed) request.sampling.seed = random_seed();
  request.max_tokens = options.max_tokens;
  request.min_tokens = options.min_tokens;
  if (!options.ignore_eos) request.stop_ids = context.model.defaults.stop_ids;
  request.stop_ids.insert(request.stop_ids.end(), options.stop_ids.begin(), options.stop_ids.end());
  request.stop_strings = options.stop;
  request.top_logprobs = options.top_logprobs;
  request.salt = options.cache_salt.empty() ? salt : cat(salt, "\n", options.cache_salt);
  request.reuse_prefix = options.cache_prompt;
  request.draft = options.draft;
  return request;
}

ApiResult<ChatPlan> plan_chat(ApiContext& context, ChatRequest& request, const std::string& salt) {
  ChatPlan plan;
  SLIP_API_TRY(plan.model, context.served_name(request.model));
  SLIP_API_TRY(plan.answerer, engine_of(context));
  if (ApiStatus problem = settle_tools(request)) return std::move(*problem);

  SLIP_API_TRY(const Prompt prompt, context.prompts.write(request));
  AnswerOptions& options = request.options;
  const int64_t room = context.context() - int64_t(prompt.ids.size());
  if (request.shorten_to_fit && room > 0) options.max_tokens = std::min(options.max_tokens, room);

  if (request.tool_use.kind == ToolUse::Kind::none) forbid_calls(context, options.sampling);
  SLIP_API_TRY(const std::unique_ptr<Constraint> form,
               context.constraints.for_chat(request, prompt.thoughts));
  // Where a form is complete nothing but the end is allowed.
  if (form) options.ignore_eos = false;

  for (int i = 0; i < options.choices; ++i) {
    PlannedChoice choice;
    SLIP_API_TRY(choice.request, plan_request(context, prompt, options, salt));
    choice.request.sampling.seed += uint64_t(i);
    if (form) choice.request.constraint = form->clone();
    choice.parser = parser_for(context, request, prompt.thoughts);
    choice.shares_prompt = i > 0;
    plan.choices.push_back(std::move(choice));
  }
  plan.prompt = prompt.ids;
  return plan;
}

}  // namespace slip
