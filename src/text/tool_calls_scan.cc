#include "text/tool_calls_scan.h"

#include <algorithm>
#include <cstdint>

#include "base/ascii.h"
#include "base/check.h"

namespace slip {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

Match undecided_unless(bool final) { return final ? Match::no : Match::undecided; }

}  // namespace

FoundTag find_first_tag(std::string_view text, Tags tags) {
  for (size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1))
    for (const std::string_view tag : tags)
      if (text.substr(at).starts_with(tag)) return {at, tag};
  return {text.size(), {}};
}

size_t undecided_from(std::string_view text, Tags tags) {
  size_t longest = 0;
  for (const std::string_view tag : tags) longest = std::max(longest, tag.size());
  const size_t first = text.size() - std::min(text.size(), longest - 1);
  for (size_t at = text.find('<', first); at != std::string_view::npos; at = text.find('<', at + 1))
    for (const std::string_view tag : tags)
      if (tag.starts_with(text.substr(at))) return at;
  return text.size();
}

Match starts_with_any(std::string_view text, Tags tags, bool final) {
  bool undecided = false;
  for (const std::string_view tag : tags) {
    if (text.starts_with(tag)) return Match::yes;
    undecided = undecided || tag.starts_with(text);
  }
  return undecided ? undecided_unless(final) : Match::no;
}

OpenTag match_open_tag(std::string_view text, std::string_view opener, bool final) {
  const Match begins = starts_with_any(text, {opener}, final);
  if (begins != Match::yes) return {begins};
  const std::string_view rest = text.substr(opener.size(), kMaxNameBytes + 1);
  const size_t end = rest.find_first_of("<>\n");
  if (end == std::string_view::npos)
    return {rest.size() > kMaxNameBytes ? Match::no : undecided_unless(final)};
  const std::string_view name = trimmed(rest.substr(0, end));
  if (rest[end] != '>' || name.empty()) return {Match::no};
  return {Match::yes, name, opener.size() + end + 1};
}

JsonStrings::State JsonStrings::after(State state, char c) {
  switch (state) {
    case State::before:
      if (kBlanks.find(c) != std::string_view::npos) return State::before;
      return c == '{' || c == '[' ? State::outside : State::no_json;
    case State::outside: return c == '"' ? State::inside : State::outside;
    case State::inside:
      if (c == '"') return State::outside;
      if (c == '\\') return State::escaped;
      return uint8_t(c) < 0x20 ? State::no_json : State::inside;
    case State::escaped: return State::inside;
    case State::no_json: return State::no_json;
  }
  unreachable("JsonStrings::State");
}

void JsonStrings::read(std::string_view text) {
  for (const char c : text) state_ = after(state_, c);
}

size_t leading_blanks(std::string_view text) {
  return std::min(text.find_first_not_of(kBlanks), text.size());
}

size_t trailing_blanks(std::string_view text) {
  const size_t last = text.find_last_not_of(kBlanks);
  return last == std::string_view::npos ? text.size() : text.size() - last - 1;
}

}  // namespace slip
