#include "slipstream/chat/line_editor_text.h"

#include <cctype>

#include "slipstream/common/terminal_text.h"

namespace slip {
namespace {

// Letters, digits and everything outside ASCII.
bool is_word(char byte) {
  return (byte & 0x80) || std::isalnum(static_cast<unsigned char>(byte)) || byte == '_';
}

}  // namespace

void EditedText::set(std::string text) {
  text_ = std::move(text);
  cursor_ = text_.size();
}

void EditedText::insert(std::string_view text) {
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

void EditedText::erase_left() {
  if (cursor_ == 0) return;
  const size_t begin = previous_character(text_, cursor_);
  text_.erase(begin, cursor_ - begin);
  cursor_ = begin;
}

void EditedText::erase_right() {
  if (cursor_ == text_.size()) return;
  text_.erase(cursor_, next_character(text_, cursor_) - cursor_);
}

void EditedText::move_left() {
  if (cursor_ > 0) cursor_ = previous_character(text_, cursor_);
}

void EditedText::move_right() {
  if (cursor_ < text_.size()) cursor_ = next_character(text_, cursor_);
}

size_t EditedText::word_start() const {
  size_t at = cursor_;
  while (at > 0 && !is_word(text_[at - 1])) --at;
  while (at > 0 && is_word(text_[at - 1])) --at;
  return at;
}

size_t EditedText::word_end() const {
  size_t at = cursor_;
  while (at < text_.size() && !is_word(text_[at])) ++at;
  while (at < text_.size() && is_word(text_[at])) ++at;
  return at;
}

void EditedText::move_word_left() { cursor_ = word_start(); }
void EditedText::move_word_right() { cursor_ = word_end(); }

size_t EditedText::line_start(size_t at) const {
  if (at == 0) return 0;
  const size_t newline = text_.rfind('\n', at - 1);
  return newline == std::string::npos ? 0 : newline + 1;
}

size_t EditedText::line_end(size_t at) const {
  const size_t newline = text_.find('\n', at);
  return newline == std::string::npos ? text_.size() : newline;
}

void EditedText::move_to_line_start() { cursor_ = line_start(cursor_); }
void EditedText::move_to_line_end() { cursor_ = line_end(cursor_); }

size_t EditedText::at_column(size_t start, int columns) const {
  const size_t end = line_end(start);
  size_t at = start;
  for (int width = 0; at < end;) {
    const size_t next = next_character(text_, at);
    width += character_width(std::string_view(text_).substr(at, next - at));
    if (width > columns) break;
    at = next;
  }
  return at;
}

bool EditedText::move_up() {
  const size_t start = line_start(cursor_);
  if (start == 0) return false;
  const int column = display_width(std::string_view(text_).substr(start, cursor_ - start));
  cursor_ = at_column(line_start(start - 1), column);
  return true;
}

bool EditedText::move_down() {
  const size_t start = line_start(cursor_), end = line_end(cursor_);
  if (end == text_.size()) return false;
  const int column = display_width(std::string_view(text_).substr(start, cursor_ - start));
  cursor_ = at_column(end + 1, column);
  return true;
}

void EditedText::erase_range(size_t begin, size_t end) {
  if (begin == end) return;
  erased_ = text_.substr(begin, end - begin);
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

void EditedText::erase_word_left() {
  // Back to white space, as shells do it: a path or a flag goes in one stroke.
  const auto is_space = [](char byte) { return byte == ' ' || byte == '\n'; };
  size_t begin = cursor_;
  while (begin > 0 && is_space(text_[begin - 1])) --begin;
  while (begin > 0 && !is_space(text_[begin - 1])) --begin;
  erase_range(begin, cursor_);
}

void EditedText::erase_word_right() { erase_range(cursor_, word_end()); }
void EditedText::erase_to_line_start() { erase_range(line_start(cursor_), cursor_); }

void EditedText::erase_to_line_end() {
  const size_t end = line_end(cursor_);
  const bool join = end == cursor_ && end < text_.size();  // at the end of a line: the line break
  erase_range(cursor_, join ? end + 1 : end);
}

void EditedText::swap_characters() {
  if (text_.empty() || cursor_ == 0) return;
  if (cursor_ == text_.size()) move_left();
  if (cursor_ == 0) return;
  const size_t left = previous_character(text_, cursor_), right = next_character(text_, cursor_);
  const std::string swapped =
      text_.substr(cursor_, right - cursor_) + text_.substr(left, cursor_ - left);
  text_.replace(left, right - left, swapped);
  cursor_ = right;
}

}  // namespace slip
