#include "text/chat_template.h"

#include <array>
#include <utility>

#include "base/files.h"

namespace slip {
namespace {

constexpr uint64_t kMaxTemplateBytes = 4u << 20;

void parse_arguments(JsonObject& call) {
  Json* arguments = call.if_contains("arguments");
  if (!arguments || !arguments->is_string()) return;
  if (arguments->get_string().empty()) {
    *arguments = JsonObject();
    return;
  }
  Result<Json> parsed = parse_json(arguments->get_string(), "arguments");
  if (parsed.ok() && parsed.value().is_object()) *arguments = std::move(parsed).value();
}

JsonObject read_special_tokens(const JsonObject& config) {
  static constexpr std::array<const char*, 7> kNames = {
      "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};
  JsonObject tokens;
  for (const char* name : kNames) {
    const Json* token = config.if_contains(name);
    if (token && token->is_object()) token = token->get_object().if_contains("content");
    if (token && token->is_string()) tokens[name] = *token;
  }
  return tokens;
}

struct TemplateTexts {
  std::string standard;
  std::optional<std::string> with_tools;
};

// HF's older form: [{"name": "default", "template": "..."}, {"name": "tool_use", ...}].
Result<TemplateTexts> read_named_templates(const JsonArray& list, const std::string& source) {
  TemplateTexts texts;
  bool has_standard = false;
  for (const Json& entry : list) {
    const JsonObject* object = entry.if_object();
    const Json* name = object ? object->if_contains("name") : nullptr;
    const Json* text = object ? object->if_contains("template") : nullptr;
    if (!name || !name->is_string() || !text || !text->is_string())
      return error(source,
                   ": an entry of chat_template needs \"name\" and \"template\" as strings");
    if (name->get_string() == "default") {
      texts.standard = text->get_string();
      has_standard = true;
    } else if (name->get_string() == "tool_use") {
      texts.with_tools = text->get_string();
    }
  }
  if (!has_standard) return error(source, ": chat_template has no entry named \"default\"");
  return texts;
}

Result<TemplateTexts> read_config_template(const JsonObject& config, const std::string& source) {
  const Json* found = config.if_contains("chat_template");
  if (!found)
    return error(source, ": no chat_template here and no chat_template.jinja beside it; ",
                 "the model has no chat format, use plain completion or add a template");
  if (found->is_string()) return TemplateTexts{std::string(found->get_string()), std::nullopt};
  if (found->is_array()) return read_named_templates(found->get_array(), source);
  return error(source, ": chat_template is ", describe_json_kind(*found),
               ", expected a string or a list");
}

Result<JsonObject> read_tokenizer_config(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return JsonObject();
  SLIP_TRY(const std::string text, read_text_file(path));
  SLIP_TRY(Json json, parse_json(text, path.string()));
  if (!json.is_object()) return error(path.string(), ": expected an object");
  return std::move(json.get_object());
}

}  // namespace

JsonArray with_parsed_tool_arguments(JsonArray messages) {
  for (Json& message : messages) {
    JsonObject* object = message.if_object();
    Json* calls = object ? object->if_contains("tool_calls") : nullptr;
    if (!calls || !calls->is_array()) continue;
    for (Json& call : calls->get_array()) {
      if (!call.is_object()) continue;
      parse_arguments(call.get_object());
      Json* function = call.get_object().if_contains("function");
      if (function && function->is_object()) parse_arguments(function->get_object());
    }
  }
  return messages;
}

Result<ChatTemplate> ChatTemplate::from_text(std::string text, const std::string& source) {
  SLIP_TRY(jinja::Template parsed, jinja::Template::parse(text, source));
  return ChatTemplate(std::move(text), std::move(parsed));
}

Result<ChatTemplate> ChatTemplate::load(const std::filesystem::path& model_dir,
                                        const OutputFormat& format) {
  const std::filesystem::path config_path = model_dir / "tokenizer_config.json";
  SLIP_TRY(const JsonObject config, read_tokenizer_config(config_path));
  const std::filesystem::path template_path = model_dir / "chat_template.jinja";
  std::error_code ignored;
  const bool own_file = std::filesystem::exists(template_path, ignored);
  TemplateTexts texts;
  std::string source = "chat_template";
  if (own_file) {
    source = "chat_template.jinja";
    SLIP_TRY(texts.standard, read_text_file(template_path, kMaxTemplateBytes));
  } else if (!config.contains("chat_template") && !format.fallback_template.empty()) {
    source = "the built-in chat template";
    texts.standard = format.fallback_template;
  } else {
    SLIP_TRY(texts, read_config_template(config, config_path.filename().string()));
  }
  SLIP_TRY(ChatTemplate result, from_text(std::move(texts.standard), source));
  if (texts.with_tools) {
    SLIP_TRY(result.with_tools_,
             jinja::Template::parse(*texts.with_tools, "chat_template tool_use"));
  }
  result.special_tokens_ = read_special_tokens(config);
  return result;
}

Result<std::string> ChatTemplate::render(const Request& request) const {
  JsonObject context = special_tokens_;
  context["messages"] = with_parsed_tool_arguments(request.messages);
  // Hugging Face passes None, not nothing, and templates are written against that.
  context["tools"] = request.tools.empty() ? Json(nullptr) : Json(request.tools);
  context["documents"] = nullptr;
  context["add_generation_prompt"] = request.add_generation_prompt;
  for (const auto& flag : request.flags) context[flag.key()] = flag.value();
  const bool use_tools = with_tools_ && !request.tools.empty();
  return (use_tools ? *with_tools_ : standard_).render(context);
}

}  // namespace slip
