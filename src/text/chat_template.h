// A model's chat template: messages in, prompt text out, as Hugging Face's apply_chat_template
// renders it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "text/jinja.h"
#include "text/output_format.h"

namespace slip {

class ChatTemplate {
 public:
  static Result<ChatTemplate> from_text(std::string text, const std::string& source);

  // chat_template.jinja, or "chat_template" in tokenizer_config.json: a text, or a list of named
  // ones of which "default" and "tool_use" matter; where there is neither, what the format of the
  // model's output suggests. The special tokens of tokenizer_config.json become variables
  // (bos_token, eos_token, ...).
  static Result<ChatTemplate> load(const std::filesystem::path& model_dir,
                                   const OutputFormat& format = kQwenOutput);

  struct Request {
    JsonArray messages;
    JsonArray tools;   // empty: none
    JsonObject flags;  // further variables (enable_thinking, ...); they win over all others
    bool add_generation_prompt = true;
  };

  // What the template refuses with raise_exception() comes back as an error of just that text.
  Result<std::string> render(const Request& request) const;

  // Of the one that requests without tools use, to be shown.
  const std::string& text() const { return text_; }

 private:
  ChatTemplate(std::string text, jinja::Template standard)
      : text_(std::move(text)), standard_(std::move(standard)) {}

  std::string text_;
  jinja::Template standard_;
  std::optional<jinja::Template> with_tools_;  // used when a request has tools
  JsonObject special_tokens_;
};

// Clients send the arguments of earlier tool calls as JSON text, templates iterate over them as
// objects. Arguments that are no JSON object stay as they are.
JsonArray with_parsed_tool_arguments(JsonArray messages);

}  // namespace slip
