#include "slipstream/chat/conversation.h"

#include "base/files.h"

namespace slip {
namespace {

// As a Markdown quotation.
std::string quoted(std::string_view text) {
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
    const auto text_of = [&](const char* key) { return text_or_empty(member_of(&value, key)); };
    const std::string_view role = text_of("role");
    out += cat("\n## ", role == "user" ? "You" : role == "system" ? "System" : model, "\n\n");
    if (const std::string_view thoughts = text_of("reasoning_content"); !thoughts.empty())
      out += quoted(thoughts) + "\n\n";
    out += cat(text_of("content"), "\n");
    if (const Json* calls = member_of(&value, "tool_calls"))
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
  SLIP_TRY(const std::filesystem::path place, place_to_write(path));
  return write_file_atomically(place, json ? as_json(model) : as_markdown(model));
}

}  // namespace slip
