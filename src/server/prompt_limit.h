// Refuses prompts by their bytes, before they are tokenised: that takes seconds and much memory for
// texts of many megabytes, of which no model could read the tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "server/api_error.h"
#include "text/tokenizer.h"

namespace slip {

class PromptLimit {
 public:
  // `context`: how many tokens there is room for, asked for at each check.
  PromptLimit(const Tokenizer& tokenizer, std::function<int64_t()> context);

  // An error if the text, the request's `field`, is too long however it is tokenised. Text that
  // would fit is never refused.
  ApiStatus check(std::string_view text, std::string_view field) const;

 private:
  std::function<int64_t()> context_;
  size_t longest_ = 1;  // bytes of a token
};

}  // namespace slip
