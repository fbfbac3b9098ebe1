#include "server/chat_messages.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/request_fields.h"

namespace slip {
namespace {

const Json* member_or_null(const JsonObject& object, std::string_view key) {
  const Json* member = object.if_contains(key);
  return member && !member->is_null() ? member : nullptr;
}

// Claude Code begins its system prompt with a line that differs in every request, which would keep
// every prompt from being found remembered. Gateways pass it on to other endpoints.
std::string without_volatile_lines(std::string_view text) {
  static constexpr std::string_view kVolatile = "x-anthropic-billing-header:";
  if (text.find(kVolatile) == std::string_view::npos) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    if (!text.starts_with(kVolatile)) out += text.substr(0, end);
    text.remove_prefix(end);
  }
  out.erase(0, out.find_first_not_of('\n'));
  return out;
}

// Templates iterate over arguments. Models do write calls that are no JSON, and clients answer them
// with what is wrong and send both back: such text is one argument, so that the model can read it.
Json arguments_object(const Json* arguments) {
  if (!arguments) return JsonObject();
  if (arguments->is_object()) return *arguments;
  if (!arguments->is_string()) return JsonObject{{"arguments", dump_json(*arguments)}};
  const std::string_view text = arguments->get_string();
  if (text.empty() || text == "null") return JsonObject();
  Result<Json> parsed = parse_json(text, "arguments");
  if (parsed.ok() && parsed.value().is_object()) return std::move(parsed).value();
  return JsonObject{{"arguments", text}};
}

std::string refused_part(std::string_view type) {
  if (type.find("image") != std::string_view::npos)
    return "this model reads text only: images are not supported";
  if (type.find("audio") != std::string_view::npos)
    return "this model reads text only: audio is not supported";
  if (type.empty()) return "a content part must be an object with a 'type'";
  return cat("content parts of type '", type, "' are not supported, only 'text' is");
}

// One message; the first problem with it ends the work.
class MessageReader {
 public:
  MessageReader(const JsonObject& message, std::string path)
      : message_(message), path_(std::move(path)) {}

  ApiResult<JsonObject> read() {
    JsonObject out;
    out["role"] = role();
    out["content"] = content();
    if (out["role"] == "system")
      out["content"] = without_volatile_lines(out["content"].get_string());
    if (out["role"] == "assistant") {
      add_reasoning(out);
      add_tool_calls(out);
    }
    if (const std::string_view id = text_member(message_, "tool_call_id"); !id.empty())
      out["tool_call_id"] = id;
    if (problem_) return std::move(*problem_);
    return out;
  }

 private:
  void fail(std::string message, std::string_view member) {
    if (!problem_) problem_ = bad_request(std::move(message), cat(path_, ".", member));
  }

  std::string_view role() {
    const std::string_view role = text_member(message_, "role");
    if (role == "developer") return "system";
    if (role == "function") return "tool";
    if (role == "system" || role == "user" || role == "assistant" || role == "tool") return role;
    fail(cat("'", path_,
             ".role' must be one of 'system', 'developer', 'user', 'assistant', "
             "'tool'"),
         "role");
    return "user";
  }

  std::string content() {
    const bool of_tool = role() == "tool";
    ApiResult<std::string> text =
        content_text(member_or_null(message_, "content"), path_ + ".content",
                     of_tool ? OtherParts::noted : OtherParts::refused);
    if (auto* read = std::get_if<std::string>(&text)) return std::move(*read);
    if (!problem_) problem_ = std::get<ApiError>(std::move(text));
    return "";
  }

  void add_reasoning(JsonObject& out) {
    for (const std::string_view name : {"reasoning_content", "reasoning", "thinking"}) {
      const std::string_view thoughts = text_member(message_, name);
      if (thoughts.empty()) continue;
      out["reasoning_content"] = thoughts;
      return;
    }
  }

  void add_tool_calls(JsonObject& out) {
    const Json* calls = member_or_null(message_, "tool_calls");
    if (!calls) return;
    if (!calls->is_array()) {
      fail(cat("'", path_, ".tool_calls' must be a list"), "tool_calls");
      return;
    }
    JsonArray read;
    for (const Json& call : calls->get_array()) {
      const JsonObject* object = call.if_object();
      const Json* function = object ? member_or_null(*object, "function") : nullptr;
      if (!function || !function->is_object() ||
          text_member(function->get_object(), "name").empty()) {
        fail("a tool call must have a 'function' with a 'name'", "tool_calls");
        return;
      }
      const Json* arguments = member_or_null(function->get_object(), "arguments");
      read.push_back(
          JsonObject{{"id", text_member(*object, "id")},
                     {"type", "function"},
                     {"function", JsonObject{{"name", text_member(function->get_object(), "name")},
                                             {"arguments", arguments_object(arguments)}}}});
    }
    if (!read.empty()) out["tool_calls"] = std::move(read);
  }

  const JsonObject& message_;
  std::string path_;
  std::optional<ApiError> problem_;
};

void append_paragraph(std::string& text, std::string_view more) {
  if (more.empty()) return;
  if (!text.empty()) text += "\n\n";
  text += more;
}

}  // namespace

std::string note_of_part(std::string_view type) {
  return cat("[left out: ", type, "; only text can be read here]");
}

ApiResult<std::string> content_text(const Json* content, const std::string& path,
                                    OtherParts others) {
  if (!content || content->is_null()) return "";
  if (content->is_string()) return std::string(content->get_string());
  if (!content->is_array())
    return bad_request(cat("'", path, "' must be a string or a list of parts, but is ",
                           describe_json_kind(*content)),
                       path);
  std::string text;
  for (const Json& part : content->get_array()) {
    if (part.is_string()) {
      text += std::string_view(part.get_string());
      continue;
    }
    const JsonObject* object = part.if_object();
    const std::string_view type = object ? text_member(*object, "type") : std::string_view();
    if (type == "text" || type == "input_text" || type == "output_text")
      text += text_member(*object, "text");
    else if (type == "refusal")
      text += text_member(*object, "refusal");
    else if (others == OtherParts::noted && !type.empty())
      text += note_of_part(type);
    else
      return bad_request(refused_part(type), path);
  }
  return text;
}

ApiResult<JsonArray> normalised_messages(const JsonArray& messages, std::string_view field) {
  if (messages.empty())
    return bad_request(cat("'", field, "' must not be empty"), std::string(field));
  JsonArray out;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string path = cat(field, "[", i, "]");
    const JsonObject* object = messages[i].if_object();
    if (!object) return bad_request(cat("'", path, "' must be an object"), path);
    SLIP_API_TRY(JsonObject read, MessageReader(*object, path).read());
    out.push_back(std::move(read));
  }
  return out;
}

JsonArray with_one_system_message(JsonArray messages) {
  std::string system;
  JsonArray others;
  for (Json& message : messages) {
    const JsonObject& object = message.get_object();
    if (text_member(object, "role") == "system")
      append_paragraph(system, text_member(object, "content"));
    else
      others.push_back(std::move(message));
  }
  if (system.empty()) return others;
  JsonArray out;
  out.push_back(JsonObject{{"role", "system"}, {"content", system}});
  for (Json& message : others) out.push_back(std::move(message));
  return out;
}

bool add_missing_user_turn(JsonArray& messages) {
  const auto is_of = [](std::string_view role) {
    return
        [role](const Json& message) { return text_member(message.get_object(), "role") == role; };
  };
  if (std::ranges::any_of(messages, is_of("user"))) return false;
  const auto* first = std::ranges::find_if_not(messages, is_of("system"));
  messages.insert(first, JsonObject{{"role", "user"}, {"content", ""}});
  return true;
}

ApiResult<JsonArray> normalised_tools(const JsonArray& tools) {
  JsonArray out;
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string path = cat("tools[", i, "]");
    const JsonObject* object = tools[i].if_object();
    if (!object) return bad_request(cat("'", path, "' must be an object"), path);
    const std::string_view type = text_member(*object, "type");
    if (!type.empty() && type != "function")
      return bad_request(cat("tools of type '", type, "' are not supported, only 'function' is"),
                         path + ".type");
    const Json* function = member_or_null(*object, "function");
    const JsonObject* inner = function ? function->if_object() : object;
    if (!inner || text_member(*inner, "name").empty())
      return bad_request("a tool must have a 'function' with a 'name'", path + ".function.name");
    const Json* parameters = member_or_null(*inner, "parameters");
    if (parameters && !parameters->is_object())
      return bad_request("the parameters of a tool must be a JSON schema",
                         path + ".function.parameters");
    out.push_back(function ? tools[i]
                           : Json(JsonObject{{"type", "function"}, {"function", *inner}}));
  }
  return out;
}

std::string_view tool_name(const Json& tool) {
  return text_member(tool.get_object().at("function").get_object(), "name");
}

}  // namespace slip
