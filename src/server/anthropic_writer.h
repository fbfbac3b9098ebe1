// Answers of /v1/messages: blocks of thoughts, text and tool use, as events or in one piece.
#pragma once

#include <memory>
#include <string>

#include "server/api_writer.h"

namespace slip {

struct AnthropicWriterSetup {
  std::string id;
  std::string model;
  bool stream = false;
  int64_t prompt_tokens = 0;
};

// `reply` must outlive it.
std::unique_ptr<AnswerWriter> make_anthropic_writer(HttpReply& reply, AnthropicWriterSetup setup);

}  // namespace slip
