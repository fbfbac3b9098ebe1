// The pieces that OpenAI's replies are made of. Those of every token are written as text at once:
// they are made on the thread that computes.
#pragma once

#include <string>
#include <string_view>

#include "server/api.h"
#include "server/api_writer.h"
#include "text/tokenizer.h"

namespace slip {

// What all pieces of one reply repeat.
struct ReplyIdentity {
  std::string id;
  int64_t created;  // Unix time
  std::string model;
};

// "chatcmpl-" and 24 random letters and digits.
std::string random_id(std::string_view prefix);
ReplyIdentity new_identity(std::string_view prefix, std::string model);

// "stop", "length" or "tool_calls".
std::string_view openai_finish_reason(const RequestSummary& summary, bool called_tools);

JsonObject openai_usage(const AnswerUsage& usage);

// In llama.cpp's shape; the decode time is of the tokens behind the first.
JsonObject llama_timings(const RequestSummary& summary);

// JSON has no infinities: OpenAI's clients know -9999 for "impossible".
double finite_logprob(float logprob);

// Appends {"token": .., "logprob": .., "bytes": [..], "top_logprobs": [..]}.
void append_logprob(std::string& out, const Tokenizer& tokenizer, const TokenEvent& event);

// Thoughts and content as they are sent, in the field that the operator chose.
class ReasoningText {
 public:
  explicit ReasoningText(ReasoningField field) : field_(field) {}

  // Appends members such as "reasoning_content":"..","content":".." without braces. Texts that are
  // empty are left out.
  void append(std::string& out, std::string reasoning, std::string content);

 private:
  ReasoningField field_;
  bool open_ = false;  // <think> was written
};

}  // namespace slip
