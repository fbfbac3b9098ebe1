// Token ids to text while they are being generated: never half a character.
#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace slip {

// All that push() returned, and finish(), is Tokenizer::decode() of the ids.
class Detokenizer {
 public:
  // `tokenizer` must outlive this.
  explicit Detokenizer(const Tokenizer& tokenizer, bool skip_special = false)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {}

  // The text that is now complete; maybe empty.
  std::string push(int32_t id);

  // The rest: unfinished characters as U+FFFD. Then ready for another text.
  std::string finish();

 private:
  void flush_fallback_bytes(std::string& out);

  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::string unfinished_;      // at most three bytes of a character
  std::string fallback_bytes_;  // a run of fallback-byte tokens so far
};

}  // namespace slip
