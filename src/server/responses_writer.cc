#include "server/responses_writer.h"

#include <utility>

#include "base/json_dump.h"
#include "server/api_collected.h"

namespace slip {
namespace {

JsonObject text_part(std::string_view type, const std::string& text) {
  JsonObject part = {{"type", type}, {"text", text}};
  if (type == "output_text") part["annotations"] = JsonArray();
  return part;
}

// One item of the output while it is being written, and when it is done.
struct Item {
  enum class Kind : uint8_t { none, reasoning, message, call };
  Kind kind = Kind::none;
  std::string id{};
  std::string text{};  // or arguments
  // Of a call:
  std::string call_id{};
  ResponsesTool tool{};

  static Item make(Kind kind) {
    return {.kind = kind, .id = random_id(kind == Kind::reasoning ? "rs_" : "msg_")};
  }
  static Item call(ResponsesTool tool) {
    return {.kind = Kind::call,
            .id = random_id(tool.takes_text ? "ctc_" : "fc_"),
            .call_id = random_id("call_"),
            .tool = std::move(tool)};
  }

  // Of a call that is complete: a tool that takes a text gets it without the arguments around it.
  void unwrap_text() {
    if (tool.takes_text) text = text_of_arguments(text);
  }

  std::string_view part_type() const {
    return kind == Kind::reasoning ? "reasoning_text" : "output_text";
  }

  JsonObject json(std::string_view status) const {
    JsonArray content;
    if (status != "in_progress") content.push_back(text_part(part_type(), text));
    switch (kind) {
      case Kind::none: break;
      case Kind::reasoning:
        return {{"id", id},
                {"type", "reasoning"},
                {"summary", JsonArray()},
                {"content", std::move(content)},
                {"status", status}};
      case Kind::message:
        return {{"id", id},
                {"type", "message"},
                {"role", "assistant"},
                {"content", std::move(content)},
                {"status", status}};
      case Kind::call: return call_json(status);
    }
    unreachable("Item::Kind");
  }

  JsonObject call_json(std::string_view status) const {
    JsonObject call = {{"id", id},
                       {"type", tool.takes_text ? "custom_tool_call" : "function_call"},
                       {"call_id", call_id}};
    if (!tool.space.empty()) call["namespace"] = tool.space;
    call["name"] = tool.name;
    call[tool.takes_text ? "input" : "arguments"] = text;
    call["status"] = status;
    return call;
  }
};

bool cut_short(const RequestSummary& summary) {
  return openai_finish_reason(summary, false) == "length";
}

JsonObject responses_usage(const AnswerUsage& usage) {
  return {{"input_tokens", usage.prompt_tokens},
          {"input_tokens_details", JsonObject{{"cached_tokens", usage.cached_tokens}}},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", JsonObject{{"reasoning_tokens", usage.reasoning_tokens}}},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

JsonObject response_object(const ResponsesWriterSetup& setup, std::string_view status,
                           JsonArray output) {
  JsonObject response = {{"id", setup.identity.id},
                         {"object", "response"},
                         {"created_at", setup.identity.created},
                         {"status", status},
                         {"error", nullptr},
                         {"incomplete_details", nullptr},
                         {"model", setup.identity.model},
                         {"output", std::move(output)},
                         {"previous_response_id", nullptr},
                         {"store", false},
                         {"usage", nullptr}};
  for (const auto& entry : setup.echo) response[entry.key()] = entry.value();
  return response;
}

JsonObject final_response(const ResponsesWriterSetup& setup, bool incomplete, JsonArray output,
                          const AnswerUsage& usage) {
  JsonObject response =
      response_object(setup, incomplete ? "incomplete" : "completed", std::move(output));
  if (incomplete) response["incomplete_details"] = JsonObject{{"reason", "max_output_tokens"}};
  response["usage"] = responses_usage(usage);
  return response;
}

class ResponsesStream final : public AnswerWriter {
 public:
  ResponsesStream(HttpReply& reply, ResponsesWriterSetup setup)
      : reply_(reply), setup_(std::move(setup)) {}

  void begin() override {
    reply_.begin(200, "text/event-stream");
    begun_ = true;
    const std::string response =
        R"("response":)" + dump_json(response_object(setup_, "in_progress", {}));
    add_event("response.created", response);
    add_event("response.in_progress", response);
    send();
  }

  void token(const AnswerToken& token) override {
    for (const OutputEvent& piece : token.pieces) add_piece(piece);
    send();
  }

  void finish(const AnswerEnd& end) override {
    for (const OutputEvent& piece : end.pieces) add_piece(piece);
    incomplete_ = cut_short(end.summary);
    close_item(incomplete_ ? "incomplete" : "completed");
  }

  void complete(const AnswerUsage& usage) override {
    const JsonObject response = final_response(setup_, incomplete_, std::move(output_), usage);
    add_event(incomplete_ ? "response.incomplete" : "response.completed",
              R"("response":)" + dump_json(response));
    send();
    reply_.end();
  }

  void fail(const ApiError& error) override {
    if (!begun_) return send_openai_error(reply_, error);
    JsonObject response = response_object(setup_, "failed", std::move(output_));
    response["error"] = JsonObject{{"code", error.type}, {"message", error.message}};
    add_event("response.failed", R"("response":)" + dump_json(response));
    send();
    reply_.end();
  }

 private:
  void add_event(std::string_view name, std::string_view members) {
    out_.append("event: ").append(name).append("\ndata: {\"type\":\"").append(name);
    out_.append("\",\"sequence_number\":").append(std::to_string(sequence_++));
    out_.append(",").append(members).append("}\n\n");
  }

  void add_piece(const OutputEvent& piece) {
    switch (piece.kind) {
      case OutputEvent::Kind::reasoning:
        open_item_of(Item::Kind::reasoning);
        add_text("response.reasoning_text.delta", piece.text);
        break;
      case OutputEvent::Kind::content:
        open_item_of(Item::Kind::message);
        add_text("response.output_text.delta", piece.text);
        break;
      case OutputEvent::Kind::tool_call_start:
        open_item(Item::call(tool_called(setup_.tools, piece.text)));
        break;
      case OutputEvent::Kind::tool_call_arguments:
        if (item_.tool.takes_text)
          item_.text += piece.text;
        else
          add_text("response.function_call_arguments.delta", piece.text);
        break;
      case OutputEvent::Kind::tool_call_end: close_item(); break;
    }
  }

  // "item_id": .., "output_index": .., and for parts of an item "content_index": 0.
  std::string place() const {
    std::string out = R"("item_id":)";
    append_json_quoted(out, item_.id);
    out += R"(,"output_index":)" + std::to_string(output_.size());
    if (item_.kind != Item::Kind::call) out += R"(,"content_index":0)";
    return out;
  }
  std::string item_members(std::string_view status) const {
    return R"("output_index":)" + std::to_string(output_.size()) + R"(,"item":)" +
           dump_json(item_.json(status));
  }
  std::string part_member() const {
    return R"(,"part":)" + dump_json(text_part(item_.part_type(), item_.text));
  }

  void open_item_of(Item::Kind kind) {
    if (item_.kind != kind) open_item(Item::make(kind));
  }

  void open_item(Item item) {
    close_item();
    item_ = std::move(item);
    add_event("response.output_item.added", item_members("in_progress"));
    if (item_.kind != Item::Kind::call)
      add_event("response.content_part.added", place() + part_member());
  }

  void add_text(std::string_view event, const std::string& text) {
    item_.text += text;
    std::string members = place() + R"(,"delta":)";
    append_json_quoted(members, text);
    if (item_.kind == Item::Kind::message) members += R"(,"logprobs":[])";
    add_event(event, members);
  }

  void close_item(std::string_view status = "completed") {
    if (item_.kind == Item::Kind::none) return;
    std::string members = place();
    if (item_.tool.takes_text) {
      item_.unwrap_text();
      add_text("response.custom_tool_call_input.delta", std::exchange(item_.text, ""));
      members += R"(,"input":)";
      append_json_quoted(members, item_.text);
      add_event("response.custom_tool_call_input.done", members);
    } else if (item_.kind == Item::Kind::call) {
      members += R"(,"name":)";
      append_json_quoted(members, item_.tool.name);
      members += R"(,"arguments":)";
      append_json_quoted(members, item_.text);
      add_event("response.function_call_arguments.done", members);
    } else {
      members += R"(,"text":)";
      append_json_quoted(members, item_.text);
      if (item_.kind == Item::Kind::message) members += R"(,"logprobs":[])";
      add_event(item_.kind == Item::Kind::message ? "response.output_text.done"
                                                  : "response.reasoning_text.done",
                members);
      add_event("response.content_part.done", place() + part_member());
    }
    add_event("response.output_item.done", item_members(status));
    output_.push_back(item_.json(status));
    item_ = {};
  }

  void send() {
    if (!out_.empty()) reply_.write(std::exchange(out_, ""));
  }

  HttpReply& reply_;
  const ResponsesWriterSetup setup_;
  std::string out_;  // events not yet sent
  JsonArray output_;
  Item item_;
  int64_t sequence_ = 0;
  bool incomplete_ = false;
  bool begun_ = false;
};

std::string response_body(const ResponsesWriterSetup& setup, const CollectedAnswer& answer,
                          const AnswerUsage& usage) {
  JsonArray output;
  const auto add = [&](Item item, const std::string& text) {
    item.text = text;
    item.unwrap_text();
    output.push_back(item.json("completed"));
  };
  if (!answer.reasoning.empty()) add(Item::make(Item::Kind::reasoning), answer.reasoning);
  if (!answer.content.empty()) add(Item::make(Item::Kind::message), answer.content);
  for (const CollectedCall& call : answer.calls)
    add(Item::call(tool_called(setup.tools, call.name)), call.arguments);
  const bool incomplete = cut_short(answer.summary);
  if (incomplete && !output.empty()) output.back().get_object()["status"] = "incomplete";
  return dump_json(final_response(setup, incomplete, std::move(output), usage));
}

}  // namespace

std::unique_ptr<AnswerWriter> make_responses_writer(HttpReply& reply, ResponsesWriterSetup setup) {
  if (setup.stream) return std::make_unique<ResponsesStream>(reply, std::move(setup));
  return make_collecting_writer(
      reply, 1,
      {.body = [setup = std::move(setup)](
                   const auto& answers,
                   const AnswerUsage& usage) { return response_body(setup, answers[0], usage); },
       .send_error = send_openai_error});
}

}  // namespace slip
