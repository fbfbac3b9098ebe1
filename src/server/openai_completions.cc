#include "server/openai_completions.h"

#include <utility>

#include "server/api_collected.h"
#include "server/chat_plan.h"
#include "server/openai_completions_writer.h"

namespace slip {
namespace {

constexpr size_t kMostPrompts = 64;
constexpr int64_t kUsualTokens = 16;  // what OpenAI documents

// One prompt as text or as token ids.
using RawPrompt = std::variant<std::string, std::vector<int32_t>>;

struct CompletionRequest {
  std::string model;
  std::vector<RawPrompt> prompts;
  std::string suffix;
  bool echo = false;
  AnswerOptions options;
};

bool is_list_of_numbers(const Json& value) {
  return value.is_array() && !value.get_array().empty() && value.get_array()[0].is_number();
}

class PromptReader {
 public:
  PromptReader(RequestFields& fields, int64_t vocabulary)
      : fields_(fields), vocabulary_(vocabulary) {}

  std::vector<RawPrompt> read() {
    const Json* prompt = fields_.value("prompt");
    std::vector<RawPrompt> prompts;
    if (!prompt) {
      fields_.fail("prompt", "'prompt' is missing");
    } else if (prompt->is_array() && !is_list_of_numbers(*prompt)) {
      const JsonArray& list = prompt->get_array();
      if (list.empty()) fields_.fail("prompt", "'prompt' must not be empty");
      if (list.size() > kMostPrompts)
        fields_.fail("prompt", cat("'prompt' has ", list.size(), " entries, at most ", kMostPrompts,
                                   " are allowed"));
      for (size_t i = 0; i < list.size() && !fields_.failure(); ++i)
        prompts.push_back(one(list[i]));
    } else {
      prompts.push_back(one(*prompt));
    }
    return prompts;
  }

 private:
  RawPrompt one(const Json& prompt) {
    if (prompt.is_string()) return std::string(prompt.get_string());
    if (is_list_of_numbers(prompt))
      return fields_.token_ids("prompt", prompt.get_array(), vocabulary_);
    fields_.fail("prompt",
                 "'prompt' must be a string, a list of token ids, or a list of one of these");
    return std::string();
  }

  RequestFields& fields_;
  int64_t vocabulary_;
};

ApiResult<CompletionRequest> read_completion(ApiContext& context, const JsonObject& body) {
  RequestFields fields(body);
  CompletionRequest request;
  request.model = fields.text("model").value_or("");
  request.prompts = PromptReader(fields, context.vocabulary()).read();
  request.suffix = fields.text("suffix").value_or("");
  request.echo = fields.boolean("echo").value_or(false);
  request.options =
      read_answer_options(fields, context.model.defaults.sampling, context.vocabulary());
  AnswerOptions& options = request.options;
  options.max_tokens =
      read_max_tokens(fields, {"max_tokens"}, NoTokens::allowed).value_or(kUsualTokens);
  if (options.max_tokens == 0 && !request.echo)
    fields.fail("max_tokens", "'max_tokens' must be at least 1 without 'echo', but is 0");
  options.form = read_answer_form(fields);
  options.top_logprobs = int(fields.integer("logprobs", {0, kMostLogprobs}).value_or(-1));
  options.score_prompt = request.echo && options.top_logprobs >= 0;
  if (const auto best_of = fields.integer("best_of"); best_of && *best_of != options.choices)
    fields.fail("best_of", "'best_of' must equal 'n': all answers are sent");
  if (fields.failure()) return *fields.failure();
  context.note_unknown("/v1/completions", fields.unread());
  return request;
}

struct CompletionPlan {
  std::string model;
  std::vector<PlannedChoice> choices;
  std::vector<CompletionEcho> echoes;
  Answerer* answerer = nullptr;
};

ApiResult<Prompt> prompt_of(const ApiContext& context, const CompletionRequest& request,
                            const RawPrompt& raw) {
  const auto* text = std::get_if<std::string>(&raw);
  for (const auto& [field, part] : {std::pair("prompt", text), {"suffix", &request.suffix}})
    if (ApiStatus problem = part ? context.limit.check(*part, field) : std::nullopt)
      return std::move(*problem);
  if (request.suffix.empty()) {
    Prompt prompt = text ? context.prompts.raw(*text)
                         : context.prompts.raw(std::get<std::vector<int32_t>>(raw));
    if (prompt.ids.empty()) return bad_request("'prompt' must not be empty", "prompt");
    return prompt;
  }
  if (!text) return bad_request("'suffix' needs a 'prompt' that is text", "suffix");
  std::vector<int32_t> ids = context.prompts.infill(*text, request.suffix);
  if (ids.empty())
    return bad_request(
        "'suffix' is not supported by this model: it has no fill-in-the-middle "
        "tokens",
        "suffix");
  return context.prompts.raw(std::move(ids));
}

CompletionEcho echo_of(const ApiContext& context, const CompletionRequest& request,
                       const Prompt& prompt) {
  CompletionEcho echo;
  if (request.echo) echo.text = context.model.tokenizer->decode(prompt.ids);
  if (request.options.score_prompt) echo.ids = prompt.ids;
  return echo;
}

ApiResult<CompletionPlan> plan_completion(ApiContext& context, const CompletionRequest& request,
                                          const std::string& salt) {
  CompletionPlan plan;
  SLIP_API_TRY(plan.model, context.served_name(request.model));
  SLIP_API_TRY(plan.answerer, engine_of(context));
  SLIP_API_TRY(const std::unique_ptr<Constraint> constraint,
               context.constraints.for_text(request.options));
  AnswerOptions options = request.options;
  if (constraint) options.ignore_eos = false;

  size_t logprobs = 0;  // of prompts
  for (const RawPrompt& raw : request.prompts) {
    SLIP_API_TRY(const Prompt prompt, prompt_of(context, request, raw));
    const CompletionEcho echo = echo_of(context, request, prompt);
    for (int i = 0; i < options.choices; ++i) {
      logprobs += echo.ids.size() * size_t(1 + options.top_logprobs);
      PlannedChoice choice;
      SLIP_API_TRY(choice.request, plan_request(context, prompt, options, salt));
      choice.request.sampling.seed += uint64_t(i);
      if (constraint) choice.request.constraint = constraint->clone();
      choice.shares_prompt = i > 0;
      choice.request.score_prompt = options.score_prompt && i == 0;
      plan.choices.push_back(std::move(choice));
      plan.echoes.push_back(echo);
    }
  }
  if (ApiStatus problem = options.stream ? std::nullopt : too_long_for_one_piece(logprobs))
    return std::move(*problem);
  return plan;
}

}  // namespace

ApiStatus answer_openai_completion(ApiContext& context, const HttpRequest& http,
                                   const std::shared_ptr<HttpReply>& reply) {
  SLIP_API_TRY(const JsonObject body, read_body(http));
  SLIP_API_TRY(const CompletionRequest request, read_completion(context, body));
  SLIP_API_TRY(CompletionPlan plan, plan_completion(context, request, http.salt));
  start_exchange(*plan.answerer, reply,
                 make_completion_writer(*reply, {.identity = new_identity("cmpl-", plan.model),
                                                 .options = request.options,
                                                 .tokenizer = context.model.tokenizer,
                                                 .echoes = std::move(plan.echoes)}),
                 std::move(plan.choices));
  return {};
}

}  // namespace slip
