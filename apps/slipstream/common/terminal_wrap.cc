#include "slipstream/common/terminal_wrap.h"

#include "slipstream/common/terminal_text.h"

namespace slip {
namespace {

constexpr size_t kLineStart = 4;

}  // namespace

std::string WordWrap::push(std::string_view text) {
  std::string out;
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = next_character(text, at);
    const std::string_view character = text.substr(at, end - at);
    if (character == "\n") {
      end_word(out);
      end_line(out);
      continue;
    }
    if (line_start_.size() < kLineStart) line_start_ += character;
    if (character == " " || character == "\t") {
      end_word(out);
      blanks_ += character;
      continue;
    }
    // Chinese and Japanese know no blanks: a line may end at any wide character.
    const bool wide = character_width(character) > 1;
    if (wide) end_word(out);
    word_ += character;
    if (wide || word_.size() > size_t(columns_)) end_word(out);
  }
  return out;
}

std::string WordWrap::finish() {
  std::string out;
  end_word(out);
  out += blanks_;
  blanks_.clear();
  return out;
}

bool WordWrap::keeps_line() const {
  return in_fence_ || line_start_.starts_with("    ") || line_start_.starts_with('\t') ||
         line_start_.starts_with('|') || line_start_.starts_with("```");
}

void WordWrap::end_word(std::string& out) {
  if (word_.empty()) return;
  const int width = display_width(word_);
  const int gap = int(blanks_.size());
  const bool fits = column_ + gap + width <= columns_;
  // A word longer than a line is the terminal's business.
  if (!fits && column_ > 0 && width <= columns_ && !keeps_line()) {
    out += '\n';
    column_ = 0;
  } else {
    out += blanks_;
    column_ += gap;
  }
  out += word_;
  column_ += width;
  if (column_ > columns_) column_ %= columns_;
  blanks_.clear();
  word_.clear();
}

void WordWrap::end_line(std::string& out) {
  out += '\n';
  if (line_start_.starts_with("```")) in_fence_ = !in_fence_;
  blanks_.clear();
  line_start_.clear();
  column_ = 0;
}

}  // namespace slip
