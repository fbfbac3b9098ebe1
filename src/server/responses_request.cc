#include "server/responses_request.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/chat_messages.h"
#include "server/openai_chat.h"

namespace slip {
namespace {

// The texts of parts such as [{"type": "reasoning_text", "text": ".."}].
std::string text_of_parts(const Json* parts) {
  std::string text;
  if (!parts || !parts->is_array()) return text;
  for (const Json& part : parts->get_array()) {
    const JsonObject* object = part.if_object();
    if (!object) continue;
    if (!text.empty()) text += '\n';
    text += text_member(*object, "text");
  }
  return text;
}

// What OpenAI's servers looked up and how: nothing of it can be read here.
bool done_by_openai(std::string_view type) {
  static constexpr std::string_view kTypes[] = {
      "web_search_call",  "file_search_call",  "code_interpreter_call", "image_generation_call",
      "mcp_list_tools",   "mcp_call",          "mcp_approval_request",  "mcp_approval_response",
      "tool_search_call", "tool_search_output"};
  return std::ranges::find(kTypes, type) != std::end(kTypes);
}

// Items to messages. What the model said in one turn comes as several items: thoughts, text, calls.
class ItemReader {
 public:
  explicit ItemReader(JsonArray& messages) : messages_(messages) {}

  ApiStatus read(const Json& item, const std::string& path) {
    const JsonObject* object = item.if_object();
    if (!object) return bad_request(cat("'", path, "' must be an object"), path);
    const std::string_view type = text_member(*object, "type");
    if (type.empty() || type == "message") return read_message(*object, path);
    if (type == "reasoning") return read_reasoning(*object);
    if (type == "function_call")
      return read_call(*object, path, Json(text_member(*object, "arguments")));
    if (type == "custom_tool_call")
      return read_call(*object, path, text_arguments(text_member(*object, "input")));
    if (type == "function_call_output" || type == "custom_tool_call_output")
      return read_output(*object, path);
    if (done_by_openai(type)) return {};
    if (type == "item_reference")
      return bad_request("items are not stored here: send the item itself", path);
    return bad_request(cat("items of type '", type, "' are not supported"), path + ".type");
  }

  void finish() {
    if (!turn_.empty()) messages_.push_back(std::exchange(turn_, {}));
  }

 private:
  ApiStatus read_message(const JsonObject& item, const std::string& path) {
    const Json* content = item.if_contains("content");
    const std::string_view role = text_member(item, "role");
    if (role.empty() || !content)
      return bad_request(cat("'", path, "' must have a 'role' and a 'content'"), path);
    if (role != "user" && role != "assistant" && role != "system" && role != "developer")
      return bad_request(
          cat("'", path, ".role' must be one of 'user', 'assistant', 'system', 'developer'"),
          path + ".role");
    SLIP_API_TRY(std::string text, content_text(content, path + ".content"));
    if (role != "assistant") {
      finish();
      messages_.push_back(JsonObject{{"role", role}, {"content", text}});
      return {};
    }
    if (turn_.contains("content") || turn_.contains("tool_calls")) finish();
    turn_["role"] = "assistant";
    turn_["content"] = text;
    return {};
  }

  ApiStatus read_reasoning(const JsonObject& item) {
    finish();
    std::string text = text_of_parts(item.if_contains("content"));
    if (text.empty()) text = text_of_parts(item.if_contains("summary"));
    if (text.empty()) return {};
    turn_["role"] = "assistant";
    turn_["reasoning_content"] = text;
    return {};
  }

  ApiStatus read_call(const JsonObject& item, const std::string& path, Json arguments) {
    const std::string_view name = text_member(item, "name");
    if (name.empty())
      return bad_request(cat("'", path, "' must have the 'name' of a tool"), path + ".name");
    turn_["role"] = "assistant";
    Json& calls = turn_["tool_calls"];
    if (!calls.is_array()) calls = JsonArray();
    JsonObject function = {{"name", name_for_model(text_member(item, "namespace"), name)},
                           {"arguments", std::move(arguments)}};
    calls.get_array().push_back(JsonObject{{"id", text_member(item, "call_id")},
                                           {"type", "function"},
                                           {"function", std::move(function)}});
    return {};
  }

  ApiStatus read_output(const JsonObject& item, const std::string& path) {
    const Json* output = item.if_contains("output");
    if (!output || !(output->is_string() || output->is_array()))
      return bad_request("a call's 'output' must be a string or a list of parts", path + ".output");
    SLIP_API_TRY(const std::string text, content_text(output, path + ".output", OtherParts::noted));
    finish();
    messages_.push_back(JsonObject{
        {"role", "tool"}, {"tool_call_id", text_member(item, "call_id")}, {"content", text}});
    return {};
  }

  JsonArray& messages_;
  JsonObject turn_;  // of the assistant, so far
};

void read_input(RequestFields& fields, ChatRequest& request) {
  request.field = "input";
  if (const auto instructions = fields.text("instructions"))
    request.messages.push_back(JsonObject{{"role", "system"}, {"content", *instructions}});
  const Json* input = fields.value("input");
  if (!input) return fields.fail("input", "'input' is missing");
  if (input->is_string()) {
    request.messages.push_back(JsonObject{{"role", "user"}, {"content", *input}});
    return;
  }
  const JsonArray* items = fields.list("input");
  if (!items) return;
  ItemReader reader(request.messages);
  for (size_t i = 0; i < items->size(); ++i)
    if (ApiStatus problem = reader.read((*items)[i], cat("input[", i, "]")))
      return fields.fail(std::move(*problem));
  reader.finish();
}

// Every tool as a function. Those that OpenAI's servers run are left out: clients offer them
// without asking whether they exist.
class ResponsesToolReader {
 public:
  ResponsesToolReader(ApiContext& context, RequestFields& fields, ResponsesRequest& request)
      : context_(context), fields_(fields), request_(request) {}

  void read(const JsonArray& tools, const std::string& path, std::string_view space = {}) {
    for (size_t i = 0; i < tools.size() && !fields_.failure(); ++i) {
      const JsonObject* tool = tools[i].if_object();
      const std::string_view type = tool ? text_member(*tool, "type") : std::string_view();
      if (type.empty() || type == "function" || type == "custom") {
        add(tool, cat(path, "[", i, "]"), space, type == "custom");
      } else if (type == "namespace" && space.empty()) {
        read_namespace(*tool, cat(path, "[", i, "]"));
      } else {
        context_.note_unknown("/v1/responses", {cat("tools: ", type)});
        left_out_ = true;
      }
    }
  }

  bool left_out() const { return left_out_; }

 private:
  void read_namespace(const JsonObject& group, const std::string& path) {
    const std::string_view name = text_member(group, "name");
    const Json* tools = group.if_contains("tools");
    if (name.empty() || !tools || !tools->is_array())
      return fields_.fail(path, cat("'", path, "' must have a 'name' and a list of 'tools'"));
    read(tools->get_array(), path + ".tools", name);
  }

  void add(const JsonObject* object, const std::string& path, std::string_view space,
           bool takes_text) {
    const std::string_view name = object ? text_member(*object, "name") : std::string_view();
    if (name.empty())
      return fields_.fail(path + ".name", cat("'", path, "' must have the 'name' of a tool"));
    const Json* parameters = object->if_contains("parameters");
    if (parameters && !parameters->is_null() && !parameters->is_object())
      return fields_.fail(path + ".parameters",
                          cat("'", path, ".parameters' must be a JSON schema"));
    JsonObject function = takes_text ? text_function(*object) : *object;
    function.erase("type");
    if (!is_true(function.if_contains("strict"))) function.erase("strict");
    const std::string known_as = name_for_model(space, name);
    function["name"] = known_as;
    request_.chat.tools.push_back(
        JsonObject{{"type", "function"}, {"function", std::move(function)}});
    if (takes_text || !space.empty())
      request_.tools[known_as] = {std::string(space), std::string(name), takes_text};
  }

  ApiContext& context_;
  RequestFields& fields_;
  ResponsesRequest& request_;
  bool left_out_ = false;
};

// A call that could only be one of a tool that was left out is left to the model.
void read_responses_tool_choice(ApiContext& context, RequestFields& fields,
                                ResponsesRequest& request, bool left_out) {
  const Json* choice = fields.value("tool_choice");
  const JsonObject* object = choice ? choice->if_object() : nullptr;
  const std::string_view type = object ? text_member(*object, "type") : std::string_view();
  const bool is_offered = type == "custom" && request.tools.contains(text_member(*object, "name"));
  if (!type.empty() && type != "function" && type != "allowed_tools" && !is_offered) {
    context.note_unknown("/v1/responses", {cat("tool_choice: ", type)});
    return;
  }
  ChatRequest& chat = request.chat;
  chat.tool_use = read_tool_choice(fields);
  if (chat.tool_use.kind == ToolUse::Kind::required && chat.tools.empty() && left_out)
    chat.tool_use.kind = ToolUse::Kind::automatic;
}

void refuse_memory(RequestFields& fields) {
  for (const std::string_view name : {"previous_response_id", "conversation"})
    if (fields.value(name))
      fields.fail(name, cat("'", name,
                            "' is not supported: responses are not stored here, send "
                            "the whole conversation as 'input'"));
  if (fields.value("prompt"))
    fields.fail("prompt", "'prompt' is not supported: prompts are not stored here");
  if (fields.boolean("background").value_or(false))
    fields.fail("background", "'background' is not supported: responses are not stored here");
}

void read_text_format(RequestFields& fields, ChatRequest& request) {
  const JsonObject* text = fields.object("text");
  const Json* format = text ? text->if_contains("format") : nullptr;
  if (!format || !format->is_object()) return;
  RequestFields inner(format->get_object(), "text.format");
  request.options.form = read_format_object(inner);
  if (inner.failure()) fields.fail(*inner.failure());
}

void read_reasoning(RequestFields& fields, ChatRequest& request) {
  const JsonObject* reasoning = fields.object("reasoning");
  if (!reasoning) return;
  RequestFields inner(*reasoning, "reasoning");
  if (const auto effort =
          inner.one_of("effort", {"none", "minimal", "low", "medium", "high", "xhigh", "max"}))
    set_effort(request, *effort);
  if (inner.failure()) fields.fail(*inner.failure());
}

}  // namespace

ApiResult<ResponsesRequest> read_responses_request(ApiContext& context, const JsonObject& body) {
  RequestFields fields(body);
  ResponsesRequest both;
  ChatRequest& request = both.chat;
  request.model = fields.text("model").value_or("");
  refuse_memory(fields);
  read_input(fields, request);
  ResponsesToolReader tools(context, fields, both);
  if (const JsonArray* list = fields.list("tools")) tools.read(*list, "tools");
  read_responses_tool_choice(context, fields, both, tools.left_out());
  request.parallel_tool_calls = fields.boolean("parallel_tool_calls").value_or(true);
  if (const JsonObject* flags = fields.object("chat_template_kwargs"))
    request.template_flags = *flags;
  read_reasoning(fields, request);
  request.options =
      read_answer_options(fields, context.model.defaults.sampling, context.vocabulary());
  request.options.choices = 1;
  request.options.max_tokens = read_max_tokens(fields, {"max_output_tokens"}).value_or(-1);
  read_text_format(fields, request);
  fields.ignore({"include", "truncation", "top_logprobs", "max_tool_calls"});
  if (fields.failure()) return *fields.failure();
  context.note_unknown("/v1/responses", fields.unread());
  return both;
}

JsonObject responses_echo(const JsonObject& body) {
  JsonObject echo = {{"instructions", nullptr},
                     {"max_output_tokens", nullptr},
                     {"metadata", JsonObject()},
                     {"parallel_tool_calls", true},
                     {"reasoning", JsonObject{{"effort", nullptr}, {"summary", nullptr}}},
                     {"temperature", nullptr},
                     {"text", JsonObject{{"format", JsonObject{{"type", "text"}}}}},
                     {"tool_choice", "auto"},
                     {"tools", JsonArray()},
                     {"top_p", nullptr},
                     {"truncation", "disabled"}};
  for (auto& entry : echo)
    if (const Json* given = body.if_contains(entry.key()); given && !given->is_null())
      entry.value() = *given;
  return echo;
}

}  // namespace slip
