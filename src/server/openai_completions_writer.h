// Answers of /v1/completions: text behind text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/api_answer_options.h"
#include "server/api_writer.h"
#include "server/openai_shapes.h"

namespace slip {

// What comes before an answer, if the client wants to see it again.
struct CompletionEcho {
  std::string text;
  std::vector<int32_t> ids;  // only if their log probabilities are sent, too
};

struct CompletionWriterSetup {
  ReplyIdentity identity;
  AnswerOptions options;
  const Tokenizer* tokenizer = nullptr;
  std::vector<CompletionEcho> echoes;  // per choice
};

// `reply` must outlive it.
std::unique_ptr<AnswerWriter> make_completion_writer(HttpReply& reply, CompletionWriterSetup setup);

}  // namespace slip
