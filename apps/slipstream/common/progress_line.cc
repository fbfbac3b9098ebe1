#include "slipstream/common/progress_line.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "slipstream/common/terminal.h"

namespace slip {
namespace {

// Seconds between two lines.
constexpr double kLineInterval = 0.2;   // on a terminal
constexpr double kReportInterval = 10;  // elsewhere

}  // namespace

void ProgressLine::clear() {
  if (open_) std::fputs("\r\033[K", stderr);
  open_ = false;
}

void ProgressLine::say(const std::string& text) {
  if (style_.quiet) return;
  clear();
  std::fprintf(stderr, "%s\n", text.c_str());
}

bool ProgressLine::is_due() {
  const double interval = style_.one_line ? kLineInterval : kReportInterval;
  if (style_.quiet || seconds() - shown_at_ < interval) return false;
  shown_at_ = seconds();
  return true;
}

void ProgressLine::show(const std::string& text) {
  if (!style_.one_line || style_.quiet) return say(text);
  constexpr int kShortest = 10;
  const auto room = size_t(std::max(style_.columns - 1, kShortest));
  std::fprintf(stderr, "\r\033[K%s", text.substr(0, room).c_str());
  std::fflush(stderr);
  open_ = true;
}

void ProgressLine::count(const std::string& what, int64_t done, int64_t total) {
  if (is_due()) show(cat(what, " ", done, " of ", total));
}

ProgressLine::Style progress_style(bool quiet) {
  return {.quiet = quiet,
          .one_line = Terminal::detect(user_environment()).overwrites,
          .columns = terminal_size().columns};
}

}  // namespace slip
