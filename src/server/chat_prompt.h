// A conversation as tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/api.h"
#include "server/chat_request.h"
#include "server/prompt_limit.h"
#include "text/output_format.h"
#include "text/reasoning.h"
#include "text/special_token_guard.h"

namespace slip {

struct Prompt {
  std::vector<int32_t> ids;
  std::string_view field;             // of the request that it was made from
  std::vector<int64_t> message_ends;  // as in Request
  Thoughts thoughts = Thoughts::none;
};

class PromptWriter {
 public:
  // Both must outlive this. The limit, if any, is checked before a conversation is tokenised.
  PromptWriter(const ServedModel& model, bool strict_template, const PromptLimit* limit = nullptr);

  // Messages and tools are checked here, and the template may refuse them.
  ApiResult<Prompt> write(const ChatRequest& request) const;

  // Text that is no conversation: special tokens in it are meant.
  Prompt raw(std::string_view text) const;
  Prompt raw(std::vector<int32_t> ids) const;

  // Both sides of a place to be filled; empty if the model has no tokens for that.
  std::vector<int32_t> infill(std::string_view before, std::string_view behind) const;

 private:
  ApiResult<std::string> render(const ChatRequest& request) const;
  Thoughts thoughts_behind(const ChatRequest& request, std::string_view prompt) const;

  const ServedModel& model_;
  bool strict_template_;
  const PromptLimit* limit_;
  SpecialTokenGuard guard_;
  const OutputFormat& format_;
};

}  // namespace slip
