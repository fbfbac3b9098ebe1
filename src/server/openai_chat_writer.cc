#include "server/openai_chat_writer.h"

#include <utility>

#include "base/clock.h"
#include "base/json_dump.h"
#include "server/api_collected.h"
#include "server/openai_stream.h"

namespace slip {
namespace {

// The tool_calls of one delta; a name and arguments that came with the same token are one entry.
class CallDeltas {
 public:
  void add(const OutputEvent& piece) {
    if (piece.kind == OutputEvent::Kind::tool_call_start) {
      deltas_.push_back({piece.index, random_id("call_"), piece.text, ""});
    } else if (!deltas_.empty() && deltas_.back().index == piece.index) {
      deltas_.back().arguments += piece.text;
    } else {
      deltas_.push_back({piece.index, "", "", piece.text});
    }
  }
  bool empty() const { return deltas_.empty(); }

  void append(std::string& out) const {
    out += R"("tool_calls":[)";
    for (const Delta& delta : deltas_) {
      if (&delta != deltas_.data()) out += ',';
      out += R"({"index":)" + std::to_string(delta.index);
      out += ',';
      if (!delta.id.empty()) {
        out += R"("id":)";
        append_json_quoted(out, delta.id);
        out += R"(,"type":"function",)";
      }
      out += R"("function":{)";
      if (!delta.id.empty()) {
        out += R"("name":)";
        append_json_quoted(out, delta.name);
        out += ',';
      }
      out += R"("arguments":)";
      append_json_quoted(out, delta.arguments);
      out += "}}";
    }
    out += ']';
  }

 private:
  struct Delta {
    int index;
    std::string id, name, arguments;
  };
  std::vector<Delta> deltas_;
};

class ChatStream final : public OpenAiStream {
 public:
  ChatStream(HttpReply& reply, ChatWriterSetup setup)
      : OpenAiStream(reply, setup.options.include_usage),
        setup_(std::move(setup)),
        choices_(size_t(setup_.options.choices), Choice(setup_.reasoning_field)) {
    head_ = R"(data: {"id":)";
    append_json_quoted(head_, setup_.identity.id);
    head_ += R"(,"object":"chat.completion.chunk","created":)" +
             std::to_string(setup_.identity.created) + R"(,"model":)";
    append_json_quoted(head_, setup_.identity.model);
    head_ += R"(,"choices":[)";
  }

  void prompt_progress(int64_t done, int64_t total) override {
    if (!setup_.options.return_progress) return;
    std::string out = role_once(0);
    open_chunk(out, 0);
    close_choice(out, "");
    out += R"(,"prompt_progress":{"total":)" + std::to_string(total) + R"(,"processed":)" +
           std::to_string(done) + R"(,"time_ms":)" +
           std::to_string(int64_t(clock_.seconds() * 1e3));
    out += "}}\n\n";
    reply_.write(std::move(out));
  }

  void token(const AnswerToken& token) override {
    if (tokens_++ == 0) first_token_ = clock_.seconds();
    const bool detailed = setup_.options.return_token_ids || setup_.options.top_logprobs >= 0;
    std::string delta = delta_of(token.choice, token.pieces);
    if (delta.empty() && !detailed) return;
    std::string out = role_once(token.choice);
    open_chunk(out, token.choice);
    out += delta;
    close_choice(out, details_of(token.event));
    if (setup_.options.timings_per_token) append_running_timings(out);
    out += "}\n\n";
    reply_.write(std::move(out));
  }

  void finish(const AnswerEnd& end) override {
    std::string out = role_once(end.choice);
    if (const std::string delta = delta_of(end.choice, end.pieces); !delta.empty()) {
      open_chunk(out, end.choice);
      out += delta;
      close_choice(out, "");
      out += "}\n\n";
    }
    open_chunk(out, end.choice);
    close_choice(out, "", openai_finish_reason(end.summary, end.called_tools));
    if (end.choice == 0) timings_ = dump_json(llama_timings(end.summary));
    if (end.choice == 0 && !setup_.options.include_usage) out += R"(,"timings":)" + timings_;
    out += "}\n\n";
    reply_.write(std::move(out));
  }

 private:
  struct Choice {
    explicit Choice(ReasoningField field) : text(field) {}
    ReasoningText text;
    bool has_role = false;
  };

  // The first chunk of a choice, which comes with its first token: tools take it for that.
  std::string role_once(int choice) {
    if (std::exchange(choices_[size_t(choice)].has_role, true)) return "";
    std::string out;
    open_chunk(out, choice);
    out += R"("role":"assistant","content":"")";
    close_choice(out, "");
    if (setup_.options.return_token_ids && choice == 0) {
      out += R"(,"prompt_token_ids":[)";
      for (size_t i = 0; i < setup_.prompt.size(); ++i)
        out += (i ? "," : "") + std::to_string(setup_.prompt[i]);
      out += ']';
    }
    return out + "}\n\n";
  }

  void open_chunk(std::string& out, int choice) const {
    out += head_;
    out += R"({"index":)" + std::to_string(choice) + R"(,"delta":{)";
  }
  static void close_choice(std::string& out, const std::string& details,
                           std::string_view finish = "") {
    out += '}';
    out += details;
    out += R"(,"finish_reason":)";
    if (finish.empty())
      out += "null";
    else
      append_json_quoted(out, finish);
    out += "}]";
  }

  std::string delta_of(int choice, std::span<const OutputEvent> pieces) {
    std::string reasoning, content, delta;
    CallDeltas calls;
    for (const OutputEvent& piece : pieces) {
      switch (piece.kind) {
        case OutputEvent::Kind::reasoning: reasoning += piece.text; break;
        case OutputEvent::Kind::content: content += piece.text; break;
        case OutputEvent::Kind::tool_call_start:
        case OutputEvent::Kind::tool_call_arguments: calls.add(piece); break;
        case OutputEvent::Kind::tool_call_end: break;
      }
    }
    choices_[size_t(choice)].text.append(delta, std::move(reasoning), std::move(content));
    if (!calls.empty()) {
      if (!delta.empty()) delta += ',';
      calls.append(delta);
    }
    return delta;
  }

  std::string details_of(const TokenEvent& event) const {
    std::string out;
    if (setup_.options.top_logprobs >= 0) {
      out += R"(,"logprobs":{"content":[)";
      append_logprob(out, *setup_.tokenizer, event);
      out += "]}";
    }
    if (setup_.options.return_token_ids)
      out += R"(,"token_ids":[)" + std::to_string(event.id) + "]";
    return out;
  }

  void append_running_timings(std::string& out) const {
    const double seconds = clock_.seconds() - first_token_;
    JsonObject timings = {{"predicted_n", tokens_}, {"predicted_ms", seconds * 1e3}};
    if (seconds > 0) timings["predicted_per_second"] = double(tokens_) / seconds;
    out += R"(,"timings":)" + dump_json(timings);
  }

  const ChatWriterSetup setup_;
  std::vector<Choice> choices_;
  Stopwatch clock_;
  double first_token_ = 0;
  int64_t tokens_ = 0;
};

std::string message_json(const CollectedAnswer& answer, ReasoningField field) {
  std::string out = R"({"role":"assistant")";
  ReasoningText text(field);
  const bool silent =
      answer.content.empty() && (field != ReasoningField::none || answer.reasoning.empty());
  text.append(out, answer.reasoning, answer.content);
  if (silent) out += answer.calls.empty() ? R"(,"content":"")" : R"(,"content":null)";
  if (!answer.calls.empty()) {
    out += R"(,"tool_calls":[)";
    for (const CollectedCall& call : answer.calls) {
      if (&call != answer.calls.data()) out += ',';
      out += dump_json(
          JsonObject{{"id", random_id("call_")},
                     {"type", "function"},
                     {"function", JsonObject{{"name", call.name}, {"arguments", call.arguments}}}});
    }
    out += ']';
  }
  return out + '}';
}

std::string choice_json(int index, const CollectedAnswer& answer, const ChatWriterSetup& setup) {
  std::string out = R"({"index":)" + std::to_string(index) + R"(,"message":)" +
                    message_json(answer, setup.reasoning_field);
  if (setup.options.top_logprobs >= 0) {
    out += R"(,"logprobs":{"content":[)";
    for (const TokenEvent& event : answer.tokens) {
      if (&event != answer.tokens.data()) out += ',';
      append_logprob(out, *setup.tokenizer, event);
    }
    out += "]}";
  } else {
    out += R"(,"logprobs":null)";
  }
  if (setup.options.return_token_ids) {
    JsonArray ids;
    for (const TokenEvent& event : answer.tokens) ids.push_back(event.id);
    out += R"(,"token_ids":)" + dump_json(ids);
  }
  out += R"(,"finish_reason":)";
  append_json_quoted(out, openai_finish_reason(answer.summary, !answer.calls.empty()));
  return out + '}';
}

std::string chat_body(const ChatWriterSetup& setup, const std::vector<CollectedAnswer>& answers,
                      const AnswerUsage& usage) {
  std::string out = R"({"id":)";
  append_json_quoted(out, setup.identity.id);
  out += R"(,"object":"chat.completion","created":)" + std::to_string(setup.identity.created) +
         R"(,"model":)";
  append_json_quoted(out, setup.identity.model);
  out += R"(,"choices":[)";
  for (size_t i = 0; i < answers.size(); ++i) {
    if (i > 0) out += ',';
    out += choice_json(int(i), answers[i], setup);
  }
  out += R"(],"usage":)" + dump_json(openai_usage(usage));
  if (setup.options.return_token_ids)
    out +=
        R"(,"prompt_token_ids":)" + dump_json(JsonArray(setup.prompt.begin(), setup.prompt.end()));
  out += R"(,"timings":)" + dump_json(llama_timings(answers[0].summary));
  return out + '}';
}

}  // namespace

std::unique_ptr<AnswerWriter> make_chat_writer(HttpReply& reply, ChatWriterSetup setup) {
  if (setup.options.stream) return std::make_unique<ChatStream>(reply, std::move(setup));
  const AnswerOptions& options = setup.options;
  const bool keep_tokens = options.return_token_ids || options.top_logprobs >= 0;
  const auto choices = size_t(options.choices);
  return make_collecting_writer(
      reply, choices,
      {.body = [setup = std::move(setup)](
                   const auto& answers,
                   const AnswerUsage& usage) { return chat_body(setup, answers, usage); },
       .send_error = send_openai_error,
       .keep_tokens = keep_tokens});
}

}  // namespace slip
