// Long texts with one odd sentence in them, and the question about it. The text is ours, the form
// is the one that minnow was trained on; the same seed gives the same text everywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace slip {

struct NeedleRequest {
  int64_t tokens = 0;  // of the whole prompt
  double depth = 0;    // 0: the needle comes first, 1: last
  uint64_t seed = 0;
};

struct NeedleText {
  std::string message;  // of the user: text, needle, text, question
  std::string secret;   // what a right answer contains
  int64_t tokens = 0;   // of the whole prompt; at most those wanted, less by a sentence at most
};

// Tokens of the prompt that a message becomes.
using CountTokens = std::function<Result<int64_t>(const std::string& message)>;

Result<NeedleText> make_needle_text(const NeedleRequest& request, const CountTokens& count);

// Whether an answer names the secret: not merely a longer word or number that contains it.
bool names_secret(const std::string& answer, const std::string& secret);

}  // namespace slip
