#include "server/anthropic_writer.h"

#include <utility>

#include "base/json_dump.h"
#include "server/api_collected.h"
#include "server/openai_shapes.h"

namespace slip {
namespace {

// Clients send it back with the thoughts and expect it to be there; nothing is signed here.
constexpr std::string_view kSignature = "slipstream";

std::string_view stop_reason(const RequestSummary& summary, bool called_tools) {
  switch (summary.finish) {
    case FinishReason::max_tokens:
    case FinishReason::context_full: return "max_tokens";
    case FinishReason::stop_string: return "stop_sequence";
    case FinishReason::stop_token:
    case FinishReason::cancelled: break;
  }
  return called_tools ? "tool_use" : "end_turn";
}

Json stop_sequence(const RequestSummary& summary) {
  if (summary.finish != FinishReason::stop_string) return nullptr;
  return Json(summary.stop_string);
}

// Tokens found remembered are not part of input_tokens.
JsonObject anthropic_usage(const AnswerUsage& usage) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"output_tokens", usage.completion_tokens}};
}

class AnthropicStream final : public AnswerWriter {
 public:
  AnthropicStream(HttpReply& reply, AnthropicWriterSetup setup)
      : reply_(reply), setup_(std::move(setup)) {}

  void begin() override {
    reply_.begin(200, "text/event-stream");
    begun_ = true;
    const JsonObject message = {
        {"id", setup_.id},
        {"type", "message"},
        {"role", "assistant"},
        {"model", setup_.model},
        {"content", JsonArray()},
        {"stop_reason", nullptr},
        {"stop_sequence", nullptr},
        {"usage", anthropic_usage({.prompt_tokens = setup_.prompt_tokens})}};
    add_event("message_start", R"("message":)" + dump_json(message));
    send();
  }

  void token(const AnswerToken& token) override {
    for (const OutputEvent& piece : token.pieces) add_piece(piece);
    send();
  }

  void finish(const AnswerEnd& end) override {
    for (const OutputEvent& piece : end.pieces) add_piece(piece);
    close_block();
    delta_ = dump_json(JsonObject{{"stop_reason", stop_reason(end.summary, end.called_tools)},
                                  {"stop_sequence", stop_sequence(end.summary)}});
  }

  void complete(const AnswerUsage& usage) override {
    add_event("message_delta",
              R"("delta":)" + delta_ + R"(,"usage":)" + dump_json(anthropic_usage(usage)));
    add_event("message_stop", "");
    send();
    reply_.end();
  }

  void fail(const ApiError& error) override {
    if (!begun_) return send_anthropic_error(reply_, error);
    reply_.write("event: error\ndata: " + anthropic_error_body(error) + "\n\n");
    reply_.end();
  }

 private:
  enum class Block : uint8_t { none, thinking, text, tool_use };

  void add_event(std::string_view name, std::string_view members) {
    out_.append("event: ").append(name).append("\ndata: {\"type\":\"").append(name).append("\"");
    if (!members.empty()) out_.append(",").append(members);
    out_ += "}\n\n";
  }

  void add_piece(const OutputEvent& piece) {
    switch (piece.kind) {
      case OutputEvent::Kind::reasoning:
        open_block(Block::thinking, R"({"type":"thinking","thinking":"","signature":""})");
        add_delta("thinking_delta", "thinking", piece.text);
        break;
      case OutputEvent::Kind::content:
        open_block(Block::text, R"({"type":"text","text":""})");
        add_delta("text_delta", "text", piece.text);
        break;
      case OutputEvent::Kind::tool_call_start:
        close_block();
        open_block(Block::tool_use, dump_json(JsonObject{{"type", "tool_use"},
                                                         {"id", random_id("toolu_")},
                                                         {"name", piece.text},
                                                         {"input", JsonObject()}}));
        break;
      case OutputEvent::Kind::tool_call_arguments:
        add_delta("input_json_delta", "partial_json", piece.text);
        break;
      case OutputEvent::Kind::tool_call_end: close_block(); break;
    }
  }

  // Unless it is open.
  void open_block(Block block, const std::string& start) {
    if (block_ == block) return;
    close_block();
    block_ = block;
    add_event("content_block_start",
              R"("index":)" + std::to_string(index_) + R"(,"content_block":)" + start);
  }

  void add_delta(std::string_view type, std::string_view member, std::string_view text) {
    std::string members = R"("index":)" + std::to_string(index_) + R"(,"delta":{"type":)";
    append_json_quoted(members, type);
    members += ',';
    append_json_quoted(members, member);
    members += ':';
    append_json_quoted(members, text);
    add_event("content_block_delta", members + "}");
  }

  void close_block() {
    if (block_ == Block::none) return;
    if (block_ == Block::thinking) add_delta("signature_delta", "signature", kSignature);
    add_event("content_block_stop", R"("index":)" + std::to_string(index_));
    block_ = Block::none;
    ++index_;
  }

  void send() {
    if (!out_.empty()) reply_.write(std::exchange(out_, ""));
  }

  HttpReply& reply_;
  const AnthropicWriterSetup setup_;
  std::string out_;    // events not yet sent
  std::string delta_;  // how the message ended
  Block block_ = Block::none;
  int index_ = 0;
  bool begun_ = false;
};

Json parsed_input(const std::string& arguments) {
  Result<Json> parsed = parse_json(arguments, "arguments");
  return parsed.ok() ? std::move(parsed).value() : Json(JsonObject());
}

std::string message_body(const AnthropicWriterSetup& setup, const CollectedAnswer& answer,
                         const AnswerUsage& usage) {
  JsonArray content;
  if (!answer.reasoning.empty())
    content.push_back(JsonObject{
        {"type", "thinking"}, {"thinking", answer.reasoning}, {"signature", kSignature}});
  if (!answer.content.empty())
    content.push_back(JsonObject{{"type", "text"}, {"text", answer.content}});
  for (const CollectedCall& call : answer.calls)
    content.push_back(JsonObject{{"type", "tool_use"},
                                 {"id", random_id("toolu_")},
                                 {"name", call.name},
                                 {"input", parsed_input(call.arguments)}});
  return dump_json(JsonObject{{"id", setup.id},
                              {"type", "message"},
                              {"role", "assistant"},
                              {"model", setup.model},
                              {"content", std::move(content)},
                              {"stop_reason", stop_reason(answer.summary, !answer.calls.empty())},
                              {"stop_sequence", stop_sequence(answer.summary)},
                              {"usage", anthropic_usage(usage)}});
}

}  // namespace

std::unique_ptr<AnswerWriter> make_anthropic_writer(HttpReply& reply, AnthropicWriterSetup setup) {
  if (setup.stream) return std::make_unique<AnthropicStream>(reply, std::move(setup));
  return make_collecting_writer(
      reply, 1,
      {.body = [setup = std::move(setup)](
                   const auto& answers,
                   const AnswerUsage& usage) { return message_body(setup, answers[0], usage); },
       .send_error = send_anthropic_error});
}

}  // namespace slip
