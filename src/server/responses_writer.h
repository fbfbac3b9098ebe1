// Answers of /v1/responses: items of thoughts, text and calls of tools, as events or in one piece.
#pragma once

#include <memory>

#include "server/api_writer.h"
#include "server/openai_shapes.h"
#include "server/responses_tools.h"

namespace slip {

struct ResponsesWriterSetup {
  ReplyIdentity identity;
  bool stream = false;
  ResponsesTools tools;
  JsonObject echo;  // what the response repeats of its request
};

// `reply` must outlive it.
std::unique_ptr<AnswerWriter> make_responses_writer(HttpReply& reply, ResponsesWriterSetup setup);

}  // namespace slip
