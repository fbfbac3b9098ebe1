// The text being edited and the cursor in it. Knows no keys and no screen.
#pragma once

#include <string>
#include <string_view>

namespace slip {

class EditedText {
 public:
  const std::string& text() const { return text_; }
  size_t cursor() const { return cursor_; }  // a byte offset at the border of a character

  // The cursor goes to the end.
  void set(std::string text);

  void insert(std::string_view text);
  void erase_left();
  void erase_right();

  void move_left();
  void move_right();
  void move_word_left();
  void move_word_right();
  // Of the line the cursor is in.
  void move_to_line_start();
  void move_to_line_end();
  void move_to_end() { cursor_ = text_.size(); }
  // False when there is no such line.
  bool move_up();
  bool move_down();

  // What these take away can be put back with put_back().
  void erase_word_left();
  void erase_word_right();
  void erase_to_line_start();
  void erase_to_line_end();
  void put_back() { insert(std::string(erased_)); }

  void swap_characters();

 private:
  void erase_range(size_t begin, size_t end);
  size_t line_start(size_t at) const;
  size_t line_end(size_t at) const;
  // The place in the line at `start` that is `columns` wide from its beginning, or its end.
  size_t at_column(size_t start, int columns) const;
  size_t word_start() const;
  size_t word_end() const;

  std::string text_;
  size_t cursor_ = 0;
  std::string erased_;
};

}  // namespace slip
