#include "slipstream/run/answer.h"

#include <optional>
#include <utility>

#include "slipstream/eval/stats.h"

namespace slip {
namespace {

// Gathers what the parser finds.
class AnswerParts {
 public:
  explicit AnswerParts(RunAnswer& answer) : answer_(answer) {}

  void add(const OutputEvent& event) {
    switch (event.kind) {
      case OutputEvent::Kind::reasoning: answer_.reasoning += event.text; break;
      case OutputEvent::Kind::content: answer_.content += event.text; break;
      case OutputEvent::Kind::tool_call_start:
        name_ = event.text;
        arguments_.clear();
        break;
      case OutputEvent::Kind::tool_call_arguments: arguments_ += event.text; break;
      case OutputEvent::Kind::tool_call_end: {
        const Result<Json> parsed = parse_json(arguments_, "tool call");
        answer_.tool_calls.push_back(JsonObject{
            {"type", "function"},
            {"function",
             JsonObject{{"name", name_},
                        {"arguments", parsed.ok() ? parsed.value() : Json(arguments_)}}}});
        break;
      }
    }
  }

 private:
  RunAnswer& answer_;
  std::string name_, arguments_;
};

}  // namespace

JsonObject RunAnswer::message() const {
  JsonObject message{{"role", "assistant"}, {"content", content}};
  if (!reasoning.empty()) message["reasoning_content"] = reasoning;
  if (!tool_calls.empty()) message["tool_calls"] = tool_calls;
  return message;
}

Result<RunAnswer> make_answer(Session& session, const Tokenizer* tokenizer,
                              const GenerateRequest& request, const RunAnswerOptions& options,
                              AnswerPrinter& printer) {
  RunAnswer answer;
  AnswerParts parts(answer);
  std::optional<OutputParser> parser;
  if (!options.plain_text && tokenizer)
    parser.emplace(output_format_of(*tokenizer), options.starts_in_thoughts, JsonArray{});
  const auto take = [&](const std::vector<OutputEvent>& events) {
    for (const OutputEvent& event : events) {
      parts.add(event);
      printer.print(event);
    }
  };
  const auto go_on = [&] { return !InterruptScope::interrupted() && !printer.reader_gone(); };
  Status numbers;

  GenerateEvents events;
  events.on_prompt = [&](int64_t done, int64_t total) {
    printer.reading(done, total);
    return go_on();
  };
  events.on_text = [&, first = true](std::string_view text) mutable {
    // Before anything is shown: what NaN chooses is no answer.
    if (std::exchange(first, false)) numbers = check_logits(session.logits());
    if (!numbers.ok()) return false;
    if (parser) {
      take(parser->feed(text));
    } else {
      take({OutputEvent{OutputEvent::Kind::content, std::string(text)}});
    }
    return go_on();
  };
  Result<GenerateResult> result = generate(session, tokenizer, request, events);
  if (parser) take(parser->finish());
  printer.finish();
  answer.reasoning.erase(answer.reasoning.find_last_not_of(" \n") + 1);
  if (!result.ok()) return std::move(result).failure();
  SLIP_TRY_STATUS(numbers);
  SLIP_TRY_STATUS(check_logits(session.logits()));
  answer.result = std::move(result).value();
  return answer;
}

}  // namespace slip
