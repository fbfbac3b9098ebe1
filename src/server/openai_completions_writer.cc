#include "server/openai_completions_writer.h"

#include <utility>

#include "base/json_dump.h"
#include "server/api_collected.h"
#include "server/openai_stream.h"
#include "text/detokenizer.h"
#include "text/utf8.h"

namespace slip {
namespace {

// Where in the text of a choice its tokens begin, counted in characters. All tokens of one that has
// several begin where it does.
class TextOffset {
 public:
  TextOffset(const Tokenizer& tokenizer, std::string_view echo)
      : detokenizer_(tokenizer), at_(count_code_points(echo)) {}

  // Of the next token.
  size_t pass(int32_t id) {
    return std::exchange(at_, at_ + count_code_points(detokenizer_.push(id)));
  }

 private:
  Detokenizer detokenizer_;
  size_t at_;
};

// The older shape of log probabilities: lists side by side.
class LogprobLists {
 public:
  explicit LogprobLists(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void add(const TokenEvent& event, TextOffset& offset) {
    tokens_.push_back(Json(text_of(event.id)));
    logprobs_.push_back(finite_logprob(event.logprob));
    JsonObject top;
    for (const TokenLogprob& other : event.top)
      top[text_of(other.id)] = finite_logprob(other.logprob);
    top_.push_back(std::move(top));
    offsets_.push_back(offset.pass(event.id));
  }

  std::string json() const {
    return dump_json(JsonObject{{"tokens", tokens_},
                                {"token_logprobs", logprobs_},
                                {"top_logprobs", top_},
                                {"text_offset", offsets_}});
  }

 private:
  std::string text_of(int32_t id) const {
    const int32_t ids[] = {id};
    return tokenizer_.decode(ids);
  }

  const Tokenizer& tokenizer_;
  JsonArray tokens_, logprobs_, top_, offsets_;
};

std::string head_of(const ReplyIdentity& identity) {
  std::string head = R"({"id":)";
  append_json_quoted(head, identity.id);
  head += R"(,"object":"text_completion","created":)" + std::to_string(identity.created) +
          R"(,"model":)";
  append_json_quoted(head, identity.model);
  return head + R"(,"choices":[)";
}

struct CompletionPiece {
  int index;
  std::string_view text;
  std::string logprobs = "null";
  std::string_view finish{};
  std::string token_ids{};
};

void append_choice(std::string& out, const CompletionPiece& piece) {
  out += R"({"index":)" + std::to_string(piece.index) + R"(,"text":)";
  append_json_quoted(out, piece.text);
  out += R"(,"logprobs":)" + piece.logprobs;
  if (!piece.token_ids.empty()) out += R"(,"token_ids":)" + piece.token_ids;
  out += R"(,"finish_reason":)";
  if (piece.finish.empty())
    out += "null";
  else
    append_json_quoted(out, piece.finish);
  out += '}';
}

class CompletionStream final : public OpenAiStream {
 public:
  CompletionStream(HttpReply& reply, CompletionWriterSetup setup)
      : OpenAiStream(reply, setup.options.include_usage), setup_(std::move(setup)) {
    for (const std::string& echo : setup_.echoes) offsets_.emplace_back(*setup_.tokenizer, echo);
    head_ = "data: " + head_of(setup_.identity);
  }

  void begin() override {
    OpenAiStream::begin();
    for (size_t i = 0; i < setup_.echoes.size(); ++i)
      if (!setup_.echoes[i].empty()) write({.index = int(i), .text = setup_.echoes[i]});
  }

  void token(const AnswerToken& token) override {
    const AnswerOptions& options = setup_.options;
    const std::string_view text = text_of(token.pieces);
    const bool detailed = options.top_logprobs >= 0 || options.return_token_ids;
    if (text.empty() && !detailed) return;
    CompletionPiece piece = {.index = token.choice, .text = text};
    if (options.top_logprobs >= 0) {
      LogprobLists lists(*setup_.tokenizer);
      lists.add(token.event, offsets_[size_t(token.choice)]);
      piece.logprobs = lists.json();
    }
    if (options.return_token_ids) piece.token_ids = "[" + std::to_string(token.event.id) + "]";
    write(piece);
  }

  void finish(const AnswerEnd& end) override {
    if (end.choice == 0) timings_ = dump_json(llama_timings(end.summary));
    write({.index = end.choice,
           .text = text_of(end.pieces),
           .finish = openai_finish_reason(end.summary, false)});
  }

 private:
  static std::string_view text_of(std::span<const OutputEvent> pieces) {
    return pieces.empty() ? std::string_view() : std::string_view(pieces[0].text);
  }

  void write(const CompletionPiece& piece) {
    std::string out = head_;
    append_choice(out, piece);
    reply_.write(out + "]}\n\n");
  }

  const CompletionWriterSetup setup_;
  std::vector<TextOffset> offsets_;  // per choice
};

std::string completion_body(const CompletionWriterSetup& setup,
                            const std::vector<CollectedAnswer>& answers, const AnswerUsage& usage) {
  std::string out = head_of(setup.identity);
  for (size_t i = 0; i < answers.size(); ++i) {
    const CollectedAnswer& answer = answers[i];
    if (i > 0) out += ',';
    const std::string text = setup.echoes[i] + answer.content;
    CompletionPiece piece = {
        .index = int(i), .text = text, .finish = openai_finish_reason(answer.summary, false)};
    if (setup.options.top_logprobs >= 0) {
      LogprobLists lists(*setup.tokenizer);
      TextOffset offset(*setup.tokenizer, setup.echoes[i]);
      for (const TokenEvent& event : answer.tokens) lists.add(event, offset);
      piece.logprobs = lists.json();
    }
    if (setup.options.return_token_ids) {
      JsonArray ids;
      for (const TokenEvent& event : answer.tokens) ids.push_back(event.id);
      piece.token_ids = dump_json(ids);
    }
    append_choice(out, piece);
  }
  return out + R"(],"usage":)" + dump_json(openai_usage(usage)) + R"(,"timings":)" +
         dump_json(llama_timings(answers[0].summary)) + "}";
}

}  // namespace

std::unique_ptr<AnswerWriter> make_completion_writer(HttpReply& reply,
                                                     CompletionWriterSetup setup) {
  if (setup.options.stream) return std::make_unique<CompletionStream>(reply, std::move(setup));
  const bool keep_tokens = setup.options.return_token_ids || setup.options.top_logprobs >= 0;
  const size_t choices = setup.echoes.size();
  return make_collecting_writer(
      reply, choices,
      {.body = [setup = std::move(setup)](
                   const auto& answers,
                   const AnswerUsage& usage) { return completion_body(setup, answers, usage); },
       .send_error = send_openai_error,
       .keep_tokens = keep_tokens});
}

}  // namespace slip
