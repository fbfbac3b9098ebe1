// Progress on standard error: one line that changes on a terminal, a line now and then elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace slip {

class ProgressLine {
 public:
  struct Style {
    bool quiet = false;     // says nothing at all
    bool one_line = false;  // a terminal that can overwrite a line
    int columns = 80;
  };
  explicit ProgressLine(const Style& style) : style_(style) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // A line that stays.
  void say(const std::string& text);

  // Whether it is time for another line of progress; if so, for none until a moment later.
  bool is_due();
  void show(const std::string& text);
  // "window 3 of 20", when it is due.
  void count(const std::string& what, int64_t done, int64_t total);
  // Takes the changing line away.
  void clear();

  bool changes() const { return style_.one_line; }
  double seconds() const { return clock_.seconds(); }

 private:
  Style style_;
  Stopwatch clock_;
  double shown_at_ = 0;
  bool open_ = false;
};

// As standard error is.
ProgressLine::Style progress_style(bool quiet = false);

}  // namespace slip
