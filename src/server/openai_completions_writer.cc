#include "server/openai_completions_writer.h"

#include <algorithm>
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

// The text of a prompt in pieces, one for each of its tokens, which together are all of it.
class EchoPieces {
 public:
  EchoPieces(const Tokenizer& tokenizer, size_t tokens) : detokenizer_(tokenizer), left_(tokens) {}

  std::string next(int32_t id) {
    std::string text = detokenizer_.push(id);
    return --left_ == 0 ? text + detokenizer_.finish() : text;
  }

 private:
  Detokenizer detokenizer_;
  size_t left_;
};

// The older shape of log probabilities: lists side by side, as text. Behind a prompt that was
// scored, the stop token has its place in them: who scores texts counts on one entry for each token
// chosen, and leaves out so many at the end.
class LogprobLists {
 public:
  explicit LogprobLists(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void add(const TokenEvent& event, TextOffset& offset) {
    begin_entry(event.id, offset);
    logprobs_ += format_double(finite_logprob(event.logprob));
    top_ += '{';
    std::vector<std::string> shown;
    for (const TokenLogprob& other : event.top) {
      std::string text = text_of(other.id);
      // Of two that look the same, the better one.
      if (std::ranges::find(shown, text) != shown.end()) continue;
      if (!shown.empty()) top_ += ',';
      append_json_quoted(top_, text);
      top_ += ':' + format_double(finite_logprob(other.logprob));
      shown.push_back(std::move(text));
    }
    top_ += '}';
  }

  // The first token of a prompt, which follows nothing.
  void add_first(int32_t id, TextOffset& offset) {
    begin_entry(id, offset);
    logprobs_ += "null";
    top_ += "null";
  }

  std::string json() const {
    return R"({"tokens":[)" + tokens_ + R"(],"token_logprobs":[)" + logprobs_ +
           R"(],"top_logprobs":[)" + top_ + R"(],"text_offset":[)" + offsets_ + "]}";
  }

 private:
  void begin_entry(int32_t id, TextOffset& offset) {
    if (!tokens_.empty())
      for (std::string* list : {&tokens_, &logprobs_, &top_, &offsets_}) *list += ',';
    append_json_quoted(tokens_, text_of(id));
    offsets_ += std::to_string(offset.pass(id));
  }

  std::string text_of(int32_t id) const {
    const int32_t ids[] = {id};
    return tokenizer_.decode(ids);
  }

  const Tokenizer& tokenizer_;
  std::string tokens_, logprobs_, top_, offsets_;  // what stands between the brackets
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
    for (const CompletionEcho& echo : setup_.echoes) {
      offsets_.emplace_back(*setup_.tokenizer, echo.text);
      prompt_offsets_.emplace_back(*setup_.tokenizer, "");
      pieces_.emplace_back(*setup_.tokenizer, echo.ids.size());
    }
    head_ = "data: " + head_of(setup_.identity);
  }

  void begin() override {
    OpenAiStream::begin();
    for (size_t i = 0; i < setup_.echoes.size(); ++i) {
      const CompletionEcho& echo = setup_.echoes[i];
      if (setup_.options.score_prompt) {
        LogprobLists lists(*setup_.tokenizer);
        lists.add_first(echo.ids.front(), prompt_offsets_[i]);
        write_echo(int(i), echo.ids.front(), lists);
      } else if (!echo.text.empty()) {
        write({.index = int(i), .text = echo.text});
      }
    }
  }

  void prompt_token(const PromptToken& token) override {
    LogprobLists lists(*setup_.tokenizer);
    lists.add(token.event, prompt_offsets_[size_t(token.choice)]);
    write_echo(token.choice, token.event.id, lists);
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
    CompletionPiece piece = {.index = end.choice,
                             .text = text_of(end.pieces),
                             .finish = openai_finish_reason(end.summary, false)};
    if (setup_.options.score_prompt && end.summary.stop_token) {
      LogprobLists lists(*setup_.tokenizer);
      lists.add(*end.summary.stop_token, offsets_[size_t(end.choice)]);
      piece.logprobs = lists.json();
    }
    write(piece);
  }

 private:
  static std::string_view text_of(std::span<const OutputEvent> pieces) {
    return pieces.empty() ? std::string_view() : std::string_view(pieces[0].text);
  }

  void write_echo(int choice, int32_t id, const LogprobLists& lists) {
    const std::string text = pieces_[size_t(choice)].next(id);
    write({.index = choice, .text = text, .logprobs = lists.json()});
  }

  void write(const CompletionPiece& piece) {
    std::string out = head_;
    append_choice(out, piece);
    reply_.write(out + "]}\n\n");
  }

  const CompletionWriterSetup setup_;
  // Per choice; the last two only serve prompts that are sent with log probabilities.
  std::vector<TextOffset> offsets_, prompt_offsets_;
  std::vector<EchoPieces> pieces_;
};

// An answer in one piece.
class CompletionBody {
 public:
  explicit CompletionBody(CompletionWriterSetup setup) : setup_(std::move(setup)) {
    for (const CompletionEcho& echo : setup_.echoes) {
      lists_.emplace_back(*setup_.tokenizer);
      prompt_offsets_.emplace_back(*setup_.tokenizer, "");
      if (setup_.options.score_prompt)
        lists_.back().add_first(echo.ids.front(), prompt_offsets_.back());
    }
  }

  void prompt_token(const PromptToken& token) {
    lists_[size_t(token.choice)].add(token.event, prompt_offsets_[size_t(token.choice)]);
  }

  std::string json(const std::vector<CollectedAnswer>& answers, const AnswerUsage& usage) {
    std::string out = head_of(setup_.identity);
    for (size_t i = 0; i < answers.size(); ++i) {
      if (i > 0) out += ',';
      add_choice(out, i, answers[i]);
    }
    return out + R"(],"usage":)" + dump_json(openai_usage(usage)) + R"(,"timings":)" +
           dump_json(llama_timings(answers[0].summary)) + "}";
  }

 private:
  void add_choice(std::string& out, size_t index, const CollectedAnswer& answer) {
    const std::string text = setup_.echoes[index].text + answer.content;
    CompletionPiece piece = {
        .index = int(index), .text = text, .finish = openai_finish_reason(answer.summary, false)};
    if (setup_.options.top_logprobs >= 0) {
      LogprobLists& lists = lists_[index];
      TextOffset offset(*setup_.tokenizer, setup_.echoes[index].text);
      for (const TokenEvent& event : answer.tokens) lists.add(event, offset);
      if (setup_.options.score_prompt && answer.summary.stop_token)
        lists.add(*answer.summary.stop_token, offset);
      piece.logprobs = lists.json();
    }
    if (setup_.options.return_token_ids) {
      JsonArray ids;
      for (const TokenEvent& event : answer.tokens) ids.push_back(event.id);
      piece.token_ids = dump_json(ids);
    }
    append_choice(out, piece);
  }

  const CompletionWriterSetup setup_;
  std::vector<LogprobLists> lists_;  // per choice, as is the next
  std::vector<TextOffset> prompt_offsets_;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_completion_writer(HttpReply& reply,
                                                     CompletionWriterSetup setup) {
  if (setup.options.stream) return std::make_unique<CompletionStream>(reply, std::move(setup));
  const bool keep_tokens = setup.options.return_token_ids || setup.options.top_logprobs >= 0;
  const size_t choices = setup.echoes.size();
  const auto body = std::make_shared<CompletionBody>(std::move(setup));
  return make_collecting_writer(
      reply, choices,
      {.body = [body](const auto& answers,
                      const AnswerUsage& usage) { return body->json(answers, usage); },
       .send_error = send_openai_error,
       .keep_tokens = keep_tokens,
       .prompt_token = [body](const PromptToken& token) { body->prompt_token(token); }});
}

}  // namespace slip
