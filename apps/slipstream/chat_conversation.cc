#include "chat_conversation.h"

#include "base/files.h"

namespace slip {
namespace {

std::string text_of(const JsonObject& message, std::string_view key) {
  const Json* value = message.if_contains(key);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

// As a Markdown quotation.
std::string quoted(const std::string& text) {
  std::string out = "> ";
  for (const char byte : text) {
    out += byte;
    if (byte == '\n') out += "> ";
  }
  return out;
}

}  // namespace

void Conversation::add_user(const std::string& text) {
  turns_.push_back(JsonObject{{"role", "user"}, {"content", text}});
}

JsonArray Conversation::messages() const {
  JsonArray messages;
  if (!system_.empty()) messages.push_back(JsonObject{{"role", "system"}, {"content", system_}});
  for (const Json& turn : turns_) messages.push_back(turn);
  return messages;
}

std::string Conversation::as_json(const std::string& model) const {
  return dump_json(JsonObject{{"model", model}, {"messages", messages()}}, 2) + "\n";
}

std::string Conversation::as_markdown(const std::string& model) const {
  std::string out = "# Chat with " + model + "\n";
  for (const Json& value : messages()) {
    const JsonObject& message = value.get_object();
    const std::string role = text_of(message, "role");
    out += cat("\n## ", role == "user" ? "You" : role == "system" ? "System" : model, "\n\n");
    if (const std::string thoughts = text_of(message, "reasoning_content"); !thoughts.empty())
      out += quoted(thoughts) + "\n\n";
    out += text_of(message, "content") + "\n";
    if (const Json* calls = message.if_contains("tool_calls"))
      out += "\n```json\n" + dump_json(*calls, 2) + "\n```\n";
  }
  return out;
}

Status Conversation::save(const std::filesystem::path& path, const std::string& model,
                          bool replace) const {
  std::error_code ignored;
  if (!replace && std::filesystem::exists(path, ignored))
    return error(path.string(), " is there already; choose another name, or remove it");
  const bool json = path.extension() == ".json";
  return write_file_atomically(path, json ? as_json(model) : as_markdown(model));
}

}  // namespace slip
