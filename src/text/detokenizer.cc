#include "text/detokenizer.h"

#include "text/utf8.h"

namespace slip {

std::string Detokenizer::push(int32_t id) {
  std::string text;
  const std::string_view bytes = tokenizer_->token_bytes(id);
  if (bytes.empty() || (skip_special_ && tokenizer_->is_special(id))) return text;
  if (tokenizer_->is_fallback_byte(id)) {
    fallback_bytes_ += bytes;
    return text;
  }
  flush_fallback_bytes(text);
  unfinished_ += bytes;
  unfinished_.erase(0, append_finished_utf8(unfinished_, text));
  return text;
}

std::string Detokenizer::finish() {
  std::string text;
  flush_fallback_bytes(text);
  append_lossy_utf8(unfinished_, text);
  unfinished_.clear();
  return text;
}

// Hugging Face's ByteFallback takes a run as a whole: valid, or U+FFFD for each of its bytes.
void Detokenizer::flush_fallback_bytes(std::string& out) {
  if (is_valid_utf8(fallback_bytes_)) {
    out += fallback_bytes_;
  } else {
    for (size_t i = 0; i < fallback_bytes_.size(); ++i) out += kReplacementCharacter;
  }
  fallback_bytes_.clear();
}

}  // namespace slip
