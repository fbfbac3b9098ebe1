// Answers of /v1/chat/completions: as a stream of chunks, or in one piece.
#pragma once

#include <memory>
#include <vector>

#include "server/api_writer.h"
#include "server/chat_request.h"
#include "server/openai_shapes.h"

namespace slip {

struct ChatWriterSetup {
  ReplyIdentity identity;
  AnswerOptions options;
  ReasoningField reasoning_field = ReasoningField::reasoning_content;
  const Tokenizer* tokenizer = nullptr;
  std::vector<int32_t> prompt{};  // sent back if token ids are asked for
};

// `reply` must outlive it.
std::unique_ptr<AnswerWriter> make_chat_writer(HttpReply& reply, ChatWriterSetup setup);

}  // namespace slip
