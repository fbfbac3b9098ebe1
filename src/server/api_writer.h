// One protocol's shape of an answer, in one piece or as a stream.
#pragma once

#include <span>
#include <string>

#include "engine/request.h"
#include "server/api_error.h"
#include "text/tool_calls.h"

namespace slip {

// One token of a choice, and what it completed: pieces of thoughts, content and tool calls.
struct AnswerToken {
  int choice;
  const TokenEvent& event;
  std::span<const OutputEvent> pieces;
};

// One token of the prompt of a choice, where log probabilities of those were asked for. The first
// of a prompt has none.
struct PromptToken {
  int choice;
  const TokenEvent& event;
};

// The end of a choice, and the pieces that were held back until then.
struct AnswerEnd {
  int choice;
  const RequestSummary& summary;
  std::span<const OutputEvent> pieces;
  int64_t reasoning_tokens;
  bool called_tools;
};

// Of all choices together; a prompt that several answer is counted once.
struct AnswerUsage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t reasoning_tokens = 0;
};

// Calls come one at a time and in the order of their declaration; complete() or fail() is the last.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  virtual void begin() = 0;  // the request was taken
  virtual void prompt_progress(int64_t /*done*/, int64_t /*total*/) {}
  virtual void prompt_token(const PromptToken& /*token*/) {}
  virtual void token(const AnswerToken& token) = 0;
  // Set when the answers have become too long for the writer: they end, and fail() is called with
  // it.
  virtual ApiStatus too_long() const { return std::nullopt; }
  virtual void finish(const AnswerEnd& end) = 0;
  virtual void complete(const AnswerUsage& usage) = 0;
  // May come at any time, before begin() too.
  virtual void fail(const ApiError& error) = 0;
};

}  // namespace slip
