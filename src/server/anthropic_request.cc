#include "server/anthropic_request.h"

#include <optional>
#include <utility>

#include "server/chat_messages.h"

namespace slip {
namespace {

void append_line(std::string& text, std::string_view more) {
  if (!text.empty() && !more.empty()) text += '\n';
  text += more;
}

bool append_texts(std::string& text, const Json* content, OtherParts others = OtherParts::refused);

// Of a block that is text, whatever form it has; nothing for all others.
std::optional<std::string> text_of_block(const JsonObject& block) {
  const std::string_view type = text_member(block, "type");
  if (type == "text") return std::string(text_member(block, "text"));
  if (type == "tool_reference") return std::string(text_member(block, "tool_name"));
  if (type != "document" && type != "search_result") return std::nullopt;
  std::string text(text_member(block, "title"));
  const Json* source = block.if_contains("source");
  if (type == "search_result") {
    append_line(text, text_or_empty(source));
    return append_texts(text, block.if_contains("content")) ? std::optional(text) : std::nullopt;
  }
  append_line(text, text_member(block, "context"));
  const std::string_view kind = text_or_empty(member_of(source, "type"));
  if (kind != "text" && kind != "content") return std::nullopt;
  const Json* content = member_of(source, kind == "text" ? "data" : "content");
  return append_texts(text, content) ? std::optional(text) : std::nullopt;
}

// A text, or a list of blocks; false if one of those is no text and may not be noted.
bool append_texts(std::string& text, const Json* content, OtherParts others) {
  append_line(text, text_or_empty(content));
  if (!content || !content->is_array()) return true;
  for (const Json& part : content->get_array()) {
    const JsonObject* block = part.if_object();
    std::optional<std::string> more = block ? text_of_block(*block) : std::nullopt;
    if (!more && block && others == OtherParts::noted)
      if (const std::string_view type = text_member(*block, "type"); !type.empty())
        more = note_of_part(type);
    if (!more) return false;
    append_line(text, *more);
  }
  return true;
}

// What Anthropic's servers looked up; the results are encrypted for them.
bool done_by_anthropic(std::string_view type) {
  return type == "server_tool_use" || type == "mcp_tool_use" || type.ends_with("_tool_result");
}

// The blocks of one message; the first problem is kept.
class BlockReader {
 public:
  BlockReader(JsonArray& messages, std::string path)
      : messages_(messages), path_(std::move(path)) {}

  ApiStatus read(std::string_view role, const Json& content) {
    if (content.is_string()) {
      text_ = content.get_string();
    } else if (content.is_array()) {
      for (const Json& block : content.get_array()) add_block(block);
    } else {
      fail("must be a string or a list of blocks");
    }
    if (problem_) return std::move(problem_);
    // Results of tools come first: they answer the calls of the turn before.
    for (Json& result : results_) messages_.push_back(std::move(result));
    const bool only_results = !results_.empty() && text_.empty();
    if (only_results) return {};
    JsonObject message = {{"role", role}, {"content", text_}};
    if (!thoughts_.empty()) message["reasoning_content"] = thoughts_;
    if (!calls_.empty()) message["tool_calls"] = std::move(calls_);
    messages_.push_back(std::move(message));
    return {};
  }

 private:
  void fail(const std::string& message) {
    if (!problem_) problem_ = bad_request(cat("'", path_, "' ", message), path_);
  }

  void add_block(const Json& block) {
    const JsonObject* object = block.if_object();
    const std::string_view type = object ? text_member(*object, "type") : std::string_view();
    if (const auto text = object ? text_of_block(*object) : std::nullopt) {
      append_line(text_, *text);
    } else if (type == "thinking") {
      append_line(thoughts_, text_member(*object, "thinking"));
    } else if (type == "redacted_thinking" || done_by_anthropic(type)) {
      // Not for us.
    } else if (type == "tool_use") {
      add_call(*object);
    } else if (type == "tool_result") {
      add_result(*object);
    } else if (type == "image" || type == "document") {
      fail(cat("holds a block of type '", type, "': this model reads text only"));
    } else {
      fail(cat("holds a block of type '", type, "', which is not supported"));
    }
  }

  void add_call(const JsonObject& block) {
    if (text_member(block, "name").empty()) fail("holds a 'tool_use' block without a 'name'");
    const Json* input = block.if_contains("input");
    calls_.push_back(
        JsonObject{{"id", text_member(block, "id")},
                   {"type", "function"},
                   {"function", JsonObject{{"name", text_member(block, "name")},
                                           {"arguments", input ? *input : Json(JsonObject())}}}});
  }

  void add_result(const JsonObject& block) {
    std::string text;
    if (!append_texts(text, block.if_contains("content"), OtherParts::noted))
      fail("holds a tool result with something that is no block");
    results_.push_back(JsonObject{
        {"role", "tool"}, {"tool_call_id", text_member(block, "tool_use_id")}, {"content", text}});
  }

  JsonArray& messages_;
  std::string path_;
  std::string text_, thoughts_;
  JsonArray calls_, results_;
  ApiStatus problem_;
};

void read_system(RequestFields& fields, JsonArray& messages) {
  const Json* system = fields.value("system");
  if (!system) return;
  std::string text;
  const auto add = [&](std::string_view more) {
    if (!text.empty() && !more.empty()) text += "\n\n";
    text += more;
  };
  if (system->is_string()) {
    add(system->get_string());
  } else if (system->is_array()) {
    for (const Json& block : system->get_array())
      if (const JsonObject* object = block.if_object()) add(text_member(*object, "text"));
  } else {
    fields.fail("system", "'system' must be a string or a list of text blocks");
  }
  if (!text.empty()) messages.push_back(JsonObject{{"role", "system"}, {"content", text}});
}

void read_messages(RequestFields& fields, JsonArray& messages) {
  const JsonArray* list = fields.list("messages");
  if (!list || list->empty()) fields.fail("messages", "'messages' is missing or empty");
  for (size_t i = 0; list && i < list->size() && !fields.failure(); ++i) {
    const std::string path = cat("messages[", i, "]");
    const JsonObject* message = (*list)[i].if_object();
    const std::string_view role = message ? text_member(*message, "role") : std::string_view();
    const Json* content = message ? message->if_contains("content") : nullptr;
    if ((role != "user" && role != "assistant" && role != "system") || !content) {
      fields.fail(bad_request(
          cat("'", path, "' must have a 'role', 'user' or 'assistant', and a 'content'"), path));
      return;
    }
    if (ApiStatus problem = BlockReader(messages, path + ".content").read(role, *content))
      fields.fail(std::move(*problem));
  }
}

// Tools that Anthropic's servers run are left out: clients offer them without asking whether they
// exist.
void read_anthropic_tools(ApiContext& context, RequestFields& fields, ChatRequest& request) {
  const JsonArray* tools = fields.list("tools");
  if (!tools) return;
  for (size_t i = 0; i < tools->size(); ++i) {
    const JsonObject* object = (*tools)[i].if_object();
    const std::string_view type = object ? text_member(*object, "type") : std::string_view();
    if (!type.empty() && type != "custom") {
      context.note_unknown("/v1/messages", {cat("tools: ", type)});
      continue;
    }
    const Json* schema = object ? object->if_contains("input_schema") : nullptr;
    if (!schema || !schema->is_object() || text_member(*object, "name").empty()) {
      const std::string path = cat("tools[", i, "]");
      fields.fail(path, cat("'", path, "' must have a 'name' and an 'input_schema'"));
      return;
    }
    JsonObject function = {{"name", text_member(*object, "name")}};
    if (const std::string_view text = text_member(*object, "description"); !text.empty())
      function["description"] = text;
    function["parameters"] = *schema;
    if (is_true(object->if_contains("strict"))) function["strict"] = true;
    request.tools.push_back(JsonObject{{"type", "function"}, {"function", std::move(function)}});
  }
}

void read_tool_choice(RequestFields& fields, ChatRequest& request) {
  const JsonObject* choice = fields.object("tool_choice");
  if (!choice) return;
  RequestFields inner(*choice, "tool_choice");
  const auto type = inner.one_of("type", {"auto", "any", "tool", "none"});
  if (type == "none") request.tool_use.kind = ToolUse::Kind::none;
  if (type == "any") request.tool_use.kind = ToolUse::Kind::required;
  if (type == "tool") request.tool_use = {ToolUse::Kind::named, inner.text("name").value_or("")};
  request.parallel_tool_calls = !inner.boolean("disable_parallel_tool_use").value_or(false);
  if (inner.failure()) fields.fail(*inner.failure());
}

// Without the field there are no thoughts, as Anthropic defines it.
void read_anthropic_thinking(RequestFields& fields, ChatRequest& request) {
  bool think = false;
  if (const JsonObject* thinking = fields.object("thinking")) {
    RequestFields inner(*thinking, "thinking");
    think = inner.one_of("type", {"enabled", "disabled", "adaptive"}).value_or("") != "disabled";
    if (const auto budget = inner.integer("budget_tokens", {0, 1 << 30}))
      request.thinking_budget = *budget;
    if (inner.failure()) fields.fail(*inner.failure());
  }
  set_thinking(request, think);
}

void read_output_config(RequestFields& fields, ChatRequest& request) {
  const JsonObject* config = fields.object("output_config");
  if (!config) return;
  RequestFields inner(*config, "output_config");
  inner.ignore({"effort"});
  if (const JsonObject* format = inner.object("format")) {
    RequestFields format_fields(*format, "output_config.format");
    request.options.form = read_format_object(format_fields);
    if (format_fields.failure()) fields.fail(*format_fields.failure());
  }
  if (inner.failure()) fields.fail(*inner.failure());
}

// An assistant's turn at the end is the beginning of the answer.
bool ends_with_prefill(const JsonArray& messages) {
  if (messages.empty()) return false;
  const JsonObject& last = messages.back().get_object();
  return text_member(last, "role") == "assistant" && !last.contains("tool_calls") &&
         !text_member(last, "content").empty();
}

}  // namespace

ApiResult<ChatRequest> read_anthropic_request(ApiContext& context, const JsonObject& body,
                                              bool counting) {
  RequestFields fields(body);
  ChatRequest request;
  request.model = fields.text("model").value_or("");
  request.options =
      read_answer_options(fields, context.model.defaults.sampling, context.vocabulary());
  request.options.choices = 1;
  const auto most = fields.integer("max_tokens", {1, 1 << 30});
  if (!most && !counting) fields.fail("max_tokens", "'max_tokens' is missing");
  request.options.max_tokens = most.value_or(1);
  request.shorten_to_fit = true;
  request.options.stop = fields.texts("stop_sequences", kMostStops);
  read_system(fields, request.messages);
  read_messages(fields, request.messages);
  read_anthropic_tools(context, fields, request);
  read_tool_choice(fields, request);
  read_anthropic_thinking(fields, request);
  read_output_config(fields, request);
  request.continue_final_message = ends_with_prefill(request.messages);
  if (fields.failure()) return *fields.failure();
  context.note_unknown("/v1/messages", fields.unread());
  return request;
}

}  // namespace slip
