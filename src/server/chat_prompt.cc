#include "server/chat_prompt.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/chat_messages.h"

namespace slip {
namespace {

// Of a message that the answer is to continue: everything but the blanks that it ends in.
size_t end_of_words(std::string_view content) {
  const size_t last = content.find_last_not_of(" \t\r\n");
  return last == std::string_view::npos ? 0 : last + 1;
}

// Templates end a final message as any other (end of turn, newline). That is cut off behind the
// place which was marked in it. Whether its trailing blanks stand there is up to the template.
std::optional<std::string> cut_at_place(std::string rendered, std::string_view blanks) {
  const size_t at = rendered.rfind(SpecialTokenGuard::kPlace);
  if (at == std::string::npos) return std::nullopt;
  const size_t behind = at + SpecialTokenGuard::kPlace.size();
  const bool keeps_blanks = std::string_view(rendered).substr(behind).starts_with(blanks);
  rendered.resize(at);
  if (keeps_blanks) rendered += blanks;
  return rendered;
}

ApiError refused_by_template(const Error& failure, std::string_view field) {
  ApiError error = bad_request(cat("the chat template refused the messages: ", failure.message),
                               std::string(field));
  // One of its limits was met. Clients shorten their conversation if they read this code.
  if (failure.setting) error.code = "context_length_exceeded";
  return error;
}

}  // namespace

PromptWriter::PromptWriter(const ServedModel& model, bool strict_template, const PromptLimit* limit)
    : model_(model),
      strict_template_(strict_template),
      limit_(limit),
      guard_(*model.tokenizer),
      format_(output_format_of(*model.tokenizer)) {}

ApiResult<std::string> PromptWriter::render(const ChatRequest& request) const {
  if (!model_.chat_template)
    return bad_request(
        cat("there are no chats with this model, use /v1/completions: ", model_.why_no_template),
        "model");
  SLIP_API_TRY(JsonArray messages, normalised_messages(request.messages, request.field));
  if (!strict_template_) messages = with_one_system_message(std::move(messages));

  ChatTemplate::Request out;
  out.flags = request.template_flags;
  for (const char* reserved : {"messages", "tools", "add_generation_prompt"})
    out.flags.erase(reserved);
  Json texts = JsonArray{std::move(messages), request.tools, std::move(out.flags)};
  guard_.mark(texts);
  out.messages = std::move(texts.get_array()[0].get_array());
  out.tools = std::move(texts.get_array()[1].get_array());
  out.flags = std::move(texts.get_array()[2].get_object());
  out.add_generation_prompt = request.add_generation_prompt && !request.continue_final_message;

  std::string blanks;
  if (request.continue_final_message) {
    if (out.messages.empty() ||
        text_member(out.messages.back().get_object(), "role") != "assistant")
      return bad_request("'continue_final_message' needs a final message of the assistant",
                         "continue_final_message");
    std::string content(text_member(out.messages.back().get_object(), "content"));
    const size_t end = end_of_words(content);
    blanks = content.substr(end);
    out.messages.back().get_object()["content"] = content.insert(end, SpecialTokenGuard::kPlace);
  }
  Result<std::string> rendered = model_.chat_template->render(out);
  if (!rendered.ok() && !strict_template_ && add_missing_user_turn(out.messages))
    rendered = model_.chat_template->render(out);
  if (!rendered.ok()) return refused_by_template(rendered.failure(), request.field);
  if (!request.continue_final_message) return std::move(rendered).value();
  std::optional<std::string> begun = cut_at_place(std::move(rendered).value(), blanks);
  if (!begun)
    return bad_request(
        "the chat template leaves out the end of the final message, so the answer "
        "cannot continue it",
        "messages");
  return std::move(*begun);
}

Thoughts PromptWriter::thoughts_behind(const ChatRequest& request, std::string_view prompt) const {
  if (ends_in_thoughts(format_, prompt)) return Thoughts::begun;
  if (request.continue_final_message) {
    const Json* content = request.messages.back().get_object().if_contains("content");
    if (content && content->is_string() && has_open_thoughts(format_, content->get_string()))
      return Thoughts::begun;
  }
  const Json* wanted = request.template_flags.if_contains("enable_thinking");
  const bool thinks = wanted && wanted->is_bool() && wanted->get_bool();
  return thinks && format_.thoughts_anywhere ? Thoughts::may_begin : Thoughts::none;
}

ApiResult<Prompt> PromptWriter::write(const ChatRequest& request) const {
  SLIP_API_TRY(const std::string text, render(request));
  if (ApiStatus problem = limit_ ? limit_->check(text, request.field) : std::nullopt)
    return std::move(*problem);
  Prompt prompt;
  prompt.field = request.field;
  prompt.ids = guard_.encode(text);
  model_.tokenizer->add_bos(prompt.ids);
  prompt.message_ends = model_.defaults.message_ends(prompt.ids);
  prompt.thoughts = thoughts_behind(request, text);
  if (prompt.ids.empty()) return bad_request("the prompt is empty", std::string(request.field));
  return prompt;
}

Prompt PromptWriter::raw(std::string_view text) const {
  std::vector<int32_t> ids = model_.tokenizer->encode(text);
  model_.tokenizer->add_bos(ids);
  return raw(std::move(ids));
}

Prompt PromptWriter::raw(std::vector<int32_t> ids) const {
  Prompt prompt;
  prompt.field = "prompt";
  prompt.message_ends = model_.defaults.message_ends(ids);
  prompt.ids = std::move(ids);
  return prompt;
}

std::vector<int32_t> PromptWriter::infill(std::string_view before, std::string_view behind) const {
  const Tokenizer& tokenizer = *model_.tokenizer;
  std::vector<int32_t> ids;
  const auto add = [&](std::string_view token, std::string_view text) {
    const std::optional<int32_t> id = tokenizer.find(token);
    if (!id) return false;
    ids.push_back(*id);
    const std::vector<int32_t> more = tokenizer.encode(text, AddedTokens::kAsText);
    ids.insert(ids.end(), more.begin(), more.end());
    return true;
  };
  const bool possible =
      add("<|fim_prefix|>", before) && add("<|fim_suffix|>", behind) && add("<|fim_middle|>", "");
  return possible ? ids : std::vector<int32_t>();
}

}  // namespace slip
