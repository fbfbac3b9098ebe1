#include "server/api_collected.h"

#include <utility>

namespace slip {
namespace {

// Of one reply; while it is made and sent it is in memory a few times over.
constexpr size_t kMostBytes = 64 << 20;
constexpr size_t kBytesOfLogprob = 100;  // as JSON, with the token's text and bytes

ApiStatus check_size(size_t bytes) {
  if (bytes <= kMostBytes) return std::nullopt;
  return bad_request(cat("the answers go beyond the ", kMostBytes >> 20,
                         " MB that are sent in one piece: ask for 'stream', for fewer choices, "
                         "or for fewer log probabilities"));
}

class CollectingWriter final : public AnswerWriter {
 public:
  CollectingWriter(HttpReply& reply, size_t choices, CollectedShape shape)
      : reply_(reply), answers_(choices), shape_(std::move(shape)) {}

  void begin() override {}

  void prompt_token(const PromptToken& token) override {
    shape_.prompt_token(token);
    add_logprobs(token.event);
  }

  void token(const AnswerToken& token) override {
    CollectedAnswer& answer = answers_[size_t(token.choice)];
    if (shape_.keep_tokens) {
      answer.tokens.push_back(token.event);
      add_logprobs(token.event);
    }
    add(answer, token.pieces);
  }

  ApiStatus too_long() const override { return check_size(bytes_); }

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
  void add_logprobs(const TokenEvent& event) { bytes_ += (1 + event.top.size()) * kBytesOfLogprob; }

  void add(CollectedAnswer& answer, std::span<const OutputEvent> pieces) {
    for (const OutputEvent& piece : pieces) {
      bytes_ += piece.text.size();
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
  size_t bytes_ = 0;  // of the reply so far, about
};

}  // namespace

ApiStatus too_long_for_one_piece(size_t logprobs) { return check_size(logprobs * kBytesOfLogprob); }

std::unique_ptr<AnswerWriter> make_collecting_writer(HttpReply& reply, size_t choices,
                                                     CollectedShape shape) {
  return std::make_unique<CollectingWriter>(reply, choices, std::move(shape));
}

}  // namespace slip
