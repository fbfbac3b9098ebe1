// Answers that are sent in one piece: everything is kept until the end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/api_writer.h"

namespace slip {

struct CollectedCall {
  std::string name;
  std::string arguments;  // JSON
};

struct CollectedAnswer {
  std::string reasoning;
  std::string content;
  std::vector<CollectedCall> calls;
  std::vector<TokenEvent> tokens;  // if they were to be kept
  RequestSummary summary;
};

// What is sent when all choices are complete, and when something went wrong.
struct CollectedShape {
  std::function<std::string(const std::vector<CollectedAnswer>&, const AnswerUsage&)> body;
  void (*send_error)(HttpReply& reply, const ApiError& error);
  bool keep_tokens = false;
  // Only where prompts are scored. There may be many of them, so each is written when it comes.
  std::function<void(const PromptToken&)> prompt_token{};
};

// Set if so many log probabilities are too many for one piece.
ApiStatus too_long_for_one_piece(size_t logprobs);

// `reply` must outlive it.
std::unique_ptr<AnswerWriter> make_collecting_writer(HttpReply& reply, size_t choices,
                                                     CollectedShape shape);

}  // namespace slip
