// Breaks streamed text between words where the terminal would break it inside one.
#pragma once

#include <string>
#include <string_view>

namespace slip {

// Code keeps its lines: inside ``` fences and in lines that begin with four blanks, a tab or a |
// nothing is broken, so that it can be copied.
class WordWrap {
 public:
  explicit WordWrap(int columns) : columns_(columns) {}

  // What can be shown now: a word is held back until it ends. `text` is valid UTF-8.
  std::string push(std::string_view text);

  // The rest.
  std::string finish();

 private:
  void end_word(std::string& out);
  void end_line(std::string& out);
  bool keeps_line() const;

  int columns_;
  int column_ = 0;
  std::string line_start_;  // the first characters of the line, to tell code
  bool in_fence_ = false;
  std::string blanks_;  // between the last word and this one
  std::string word_;
};

}  // namespace slip
