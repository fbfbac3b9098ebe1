// Keeps text from outside from becoming the tokens that structure a conversation. Templates render
// a conversation as one text, in which "<|im_end|>" written by a user looks like the template's
// own. So such spellings are put between two marks before rendering; the marks, which are taken out
// of every text from outside, survive the template and tell the tokenizer afterwards which
// spellings are just text.
//
// Only tokens that the tokenizer calls special are guarded. <think> and <tool_call> are not: they
// stand in earlier answers that clients send back, and they cannot end a turn.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/tokenizer.h"

namespace slip {

class SpecialTokenGuard {
 public:
  // `tokenizer` must outlive this.
  explicit SpecialTokenGuard(const Tokenizer& tokenizer);

  // Marks special tokens in all texts of a value, keys included.
  void mark(Json& value) const;
  std::string marked(std::string_view text) const;

  // For whoever must find a place of a message again in what was rendered: to be put into a text
  // that is marked already. No other text has it, so its place is the only one.
  static constexpr std::string_view kPlace = "\xEF\xB7\x92";  // U+FDD2

  // A rendered text to tokens.
  std::vector<int32_t> encode(std::string_view rendered) const;
  static std::string without_marks(std::string_view text);

 private:
  std::string_view special_at(std::string_view text) const;

  const Tokenizer& tokenizer_;
  std::vector<std::string> spellings_;
  std::string first_bytes_;  // of the spellings
};

}  // namespace slip
