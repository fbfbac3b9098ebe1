#include "server/api_collected.h"

#include <utility>

namespace slip {
namespace {

class CollectingWriter final : public AnswerWriter {
 public:
  CollectingWriter(HttpReply& reply, size_t choices, CollectedShape shape)
      : reply_(reply), answers_(choices), shape_(std::move(shape)) {}

  void begin() override {}

  void token(const AnswerToken& token) override {
    CollectedAnswer& answer = answers_[size_t(token.choice)];
    if (shape_.keep_tokens) answer.tokens.push_back(token.event);
    add(answer, token.pieces);
  }

  void finish(const AnswerEnd& end) override {
    CollectedAnswer& answer = answers_[size_t(end.choice)];
    add(answer, end.pieces);
    answer.summary = end.summary;
  }

  void complete(const AnswerUsage& usage) override {
    reply_.send(200, "application/json", shape_.body(answers_, usage));
  }

  void fail(const ApiError& error) override { shape_.send_error(reply_, error); }

 private:
  static void add(CollectedAnswer& answer, std::span<const OutputEvent> pieces) {
    for (const OutputEvent& piece : pieces) {
      switch (piece.kind) {
        case OutputEvent::Kind::reasoning: answer.reasoning += piece.text; break;
        case OutputEvent::Kind::content: answer.content += piece.text; break;
        case OutputEvent::Kind::tool_call_start: answer.calls.push_back({piece.text, ""}); break;
        case OutputEvent::Kind::tool_call_arguments:
          answer.calls.back().arguments += piece.text;
          break;
        case OutputEvent::Kind::tool_call_end: break;
      }
    }
  }

  HttpReply& reply_;
  std::vector<CollectedAnswer> answers_;
  CollectedShape shape_;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_collecting_writer(HttpReply& reply, size_t choices,
                                                     CollectedShape shape) {
  return std::make_unique<CollectingWriter>(reply, choices, std::move(shape));
}

}  // namespace slip
