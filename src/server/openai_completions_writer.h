// Answers of /v1/completions: text behind text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/api_answer_options.h"
#include "server/api_writer.h"
#include "server/openai_shapes.h"

namespace slip {

struct CompletionWriterSetup {
  ReplyIdentity identity;
  AnswerOptions options;
  const Tokenizer* tokenizer = nullptr;
  // Per choice: what comes before the answer, if the client wants to see it again.
  std::vector<std::string> echoes;
};

// `reply` must outlive it.
std::unique_ptr<AnswerWriter> make_completion_writer(HttpReply& reply, CompletionWriterSetup setup);

}  // namespace slip
