#include "text/reasoning.h"

#include <algorithm>

#include "text/tool_calls_scan.h"

namespace slip {
namespace {

constexpr size_t kMaxTitleBytes = 32;

bool is_title_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

std::string_view without_last_blanks(std::string_view text) {
  return text.substr(0, text.size() - trailing_blanks(text));
}

}  // namespace

ReasoningPiece next_reasoning(const OutputFormat& format, std::string_view text, bool final,
                              bool calls_end_it) {
  const Tags all = {format.thoughts_close, format.thoughts_open, format.call_open};
  const Tags no_calls = {format.thoughts_close, format.thoughts_open};
  const Tags tags = calls_end_it ? all : no_calls;
  const FoundTag found = find_first_tag(text, tags);
  if (found.tag.empty()) return {.length = final ? text.size() : undecided_from(text, tags)};
  if (found.tag == format.call_open) return {.length = found.at, .ended = true};
  return {
      .length = found.at, .skip = found.tag.size(), .ended = found.tag == format.thoughts_close};
}

ThoughtsTitle match_title(const OutputFormat& format, std::string_view text, ThoughtsOpenedBy by,
                          bool final) {
  const std::string_view title = format.thoughts_title;
  if (title.empty()) return {.decided = true};
  if (by == ThoughtsOpenedBy::prompt) {
    if (text.starts_with(title)) return {.decided = true, .length = title.size()};
    return {.decided = final || !title.starts_with(text)};
  }
  const size_t end =
      size_t(std::find_if_not(text.begin(), text.end(), is_title_byte) - text.begin());
  if (end > kMaxTitleBytes) return {.decided = true};
  if (end == text.size()) return {.decided = final, .length = end};
  if (text[end] == '\n') return {.decided = true, .length = end + 1};
  const Match closes = starts_with_any(text.substr(end), {format.thoughts_close}, final);
  return {.decided = closes != Match::undecided, .length = closes == Match::yes ? end : 0};
}

bool ends_in_thoughts(const OutputFormat& format, std::string_view prompt) {
  prompt = without_last_blanks(prompt);
  const std::string_view title = without_last_blanks(format.thoughts_title);
  if (prompt.ends_with(title)) {
    const std::string_view before = prompt.substr(0, prompt.size() - title.size());
    if (before.ends_with(format.thoughts_open)) return true;
  }
  return prompt.ends_with(format.thoughts_open);
}

bool has_open_thoughts(const OutputFormat& format, std::string_view text) {
  const size_t open = text.rfind(format.thoughts_open);
  if (open == std::string_view::npos) return false;
  const size_t closed = text.rfind(format.thoughts_close);
  return closed == std::string_view::npos || closed < open;
}

}  // namespace slip
