#include "text/tool_calls_braces.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/json_dump.h"
#include "text/tool_calls_scan.h"

namespace slip {
namespace {

constexpr std::string_view kCallWord = "call:";

using Events = std::vector<OutputEvent>;

// What stands there without quotes: a number or a word of JSON; anything else was meant as text.
std::string bare_json(std::string_view text) {
  if (text.empty() || text == "None") return "null";
  if (text == "True") return "true";
  if (text == "False") return "false";
  const Result<Json> parsed = parse_json(text, "value");
  const bool fits = parsed.ok() && (parsed.value().is_number() || parsed.value().is_bool() ||
                                    parsed.value().is_null());
  return fits ? std::string(text) : json_quoted(text);
}

}  // namespace

ToolCallParser::Progress BraceCallParser::advance(std::string_view text, bool final,
                                                  Events& events) {
  switch (state_) {
    case State::before: return read_start(text, final, events);
    case State::item: return read_item(text, final, events);
    case State::value: return read_value(text, final, events);
    case State::text: return read_text(text, final, events);
    case State::after: return read_after(text, final);
  }
  unreachable("BraceCallParser::State");
}

ToolCallParser::Progress BraceCallParser::read_start(std::string_view text, bool final,
                                                     Events& events) {
  std::string_view rest = text.substr(format_.call_open.size());
  rest.remove_prefix(leading_blanks(rest));
  const Match word = starts_with_any(rest, {kCallWord}, final);
  if (word == Match::undecided) return {Status::undecided};
  if (word == Match::no) return {Status::not_a_call};
  rest.remove_prefix(kCallWord.size());
  const size_t end = rest.find_first_of("{}<\n");
  if (end == std::string_view::npos && rest.size() <= kMaxNameBytes && !final)
    return {Status::undecided};
  const std::string_view name = trimmed(rest.substr(0, end));
  if (end == std::string_view::npos || rest[end] != '{' || name.empty() ||
      name.size() > kMaxNameBytes)
    return {Status::not_a_call};
  emit_start(std::string(name), events);
  open(/*is_list=*/false, events);
  rest.remove_prefix(end + 1);
  return {Status::in_call, text.size() - rest.size()};
}

// Between the items of an object or a list.
ToolCallParser::Progress BraceCallParser::read_item(std::string_view text, bool final,
                                                    Events& events) {
  const size_t skipped = std::min(text.find_first_not_of(" \t\r\n,"), text.size());
  const std::string_view rest = text.substr(skipped);
  if (final && is_cut_off()) {
    emit_end(events);
    return {Status::done, text.size()};
  }
  if (rest.empty()) return final ? end_call(skipped, events) : Progress{Status::undecided, skipped};
  if (rest[0] == '}' || rest[0] == ']') {
    close_innermost(events);
    if (!open_.empty()) return {Status::in_call, skipped + 1};
    emit_end(events);
    state_ = State::after;
    return {Status::in_call, skipped + 1};
  }
  const Match closing = starts_with_any(rest, {format_.call_close}, final);
  if (closing == Match::undecided) return {Status::undecided, skipped};
  if (closing == Match::yes) return end_call(skipped + format_.call_close.size(), events);
  if (open_.back().is_list) {
    if (open_.back().has_items) emit_arguments(", ", events);
    open_.back().has_items = true;
    state_ = State::value;
    return {Status::in_call, skipped};
  }
  const Progress key = read_key(rest, final, events);
  return {key.status, skipped + key.consumed};
}

ToolCallParser::Progress BraceCallParser::read_key(std::string_view text, bool final,
                                                   Events& events) {
  const Match quote = starts_with_any(text, {format_.quote}, final);
  if (quote == Match::undecided) return {Status::undecided};
  const std::string_view mark = quote == Match::yes     ? format_.quote
                                : text.starts_with('"') ? std::string_view("\"")
                                                        : std::string_view();
  const size_t name_end = mark.empty() ? 0 : text.find(mark, mark.size());
  const size_t tag = find_first_tag(text, {format_.call_close}).at;
  const size_t end = name_end == std::string_view::npos ? std::string_view::npos
                                                        : text.find_first_of(":}", name_end);
  if (end == std::string_view::npos && tag == text.size() && !final) return {Status::undecided};
  if (tag < end || text[end] != ':') {
    // No key, since no value follows.
    const size_t stray = std::min({tag, end, text.size()});
    stray_text_ += text.substr(0, stray);
    return {Status::in_call, stray};
  }
  begin_member(mark.empty() ? trimmed(text.substr(0, end))
                            : text.substr(mark.size(), name_end - mark.size()),
               events);
  return {Status::in_call, end + 1};
}

ToolCallParser::Progress BraceCallParser::read_value(std::string_view text, bool final,
                                                     Events& events) {
  const size_t blanks = leading_blanks(text);
  const std::string_view rest = text.substr(blanks);
  if (rest.empty() && !final) return {Status::undecided, blanks};
  const Match quote = starts_with_any(rest, {format_.quote}, final);
  if (quote == Match::undecided) return {Status::undecided, blanks};
  if (quote == Match::yes) {
    emit_arguments("\"", events);
    state_ = State::text;
    return {Status::in_call, blanks + format_.quote.size()};
  }
  if (rest.starts_with('{') || rest.starts_with('[')) {
    open(rest[0] == '[', events);
    return {Status::in_call, blanks + 1};
  }
  Progress value = read_json_text(rest, final, events);
  if (value.status == Status::not_a_call) value = read_bare_value(rest, final, events);
  return {value.status, blanks + value.consumed};
}

// A text in JSON's quotes, which some models write. not_a_call: it is none.
ToolCallParser::Progress BraceCallParser::read_json_text(std::string_view text, bool final,
                                                         Events& events) {
  if (!text.starts_with('"')) return {Status::not_a_call};
  const Status unfinished = final ? Status::not_a_call : Status::undecided;
  size_t end = 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  if (find_first_tag(text.substr(0, end), {format_.call_close}).at < std::min(end, text.size()))
    return {Status::not_a_call};
  if (end >= text.size()) return {unfinished};
  const size_t next = text.find_first_not_of(" \t\r\n", end + 1);
  if (next == std::string_view::npos && !final) return {Status::undecided};
  if (next != std::string_view::npos &&
      std::string_view(",]}<").find(text[next]) == std::string_view::npos)
    return {Status::not_a_call};
  const std::string_view quoted = text.substr(0, end + 1);
  const bool is_json = parse_json(quoted, "value").ok();
  emit_arguments(is_json ? std::string(quoted) : json_quoted(text.substr(1, end - 1)), events);
  state_ = State::item;
  return {Status::in_call, end + 1};
}

ToolCallParser::Progress BraceCallParser::read_bare_value(std::string_view text, bool final,
                                                          Events& events) {
  const size_t end =
      std::min(text.find_first_of(",}]"), find_first_tag(text, {format_.call_close}).at);
  if (end == text.size() && !final) return {Status::undecided};
  // Half a number is another number.
  if (end < text.size() || !is_cut_off())
    emit_arguments(bare_json(trimmed(text.substr(0, end))), events);
  state_ = State::item;
  return {Status::in_call, end};
}

// Only the quote ends a text: it may be about tool calls.
ToolCallParser::Progress BraceCallParser::read_text(std::string_view text, bool final,
                                                    Events& events) {
  const FoundTag end = find_first_tag(text, {format_.quote});
  const size_t length = end.tag.empty() && !final ? undecided_from(text, {format_.quote}) : end.at;
  std::string json;
  append_json_escaped(json, text.substr(0, length));
  emit_arguments(std::move(json), events);
  if (end.tag.empty() && !final) return {Status::undecided, length};
  if (!end.tag.empty() || !is_cut_off()) emit_arguments("\"", events);
  state_ = State::item;
  return {Status::in_call, length + end.tag.size()};
}

ToolCallParser::Progress BraceCallParser::read_after(std::string_view text, bool final) {
  const size_t blanks = leading_blanks(text);
  const Match match = starts_with_any(text.substr(blanks), {format_.call_close}, final);
  if (match == Match::undecided) return {Status::undecided, blanks};
  state_ = State::before;
  return {Status::done, blanks + (match == Match::yes ? format_.call_close.size() : 0)};
}

void BraceCallParser::begin_member(std::string_view key, Events& events) {
  emit_arguments((open_.back().has_items ? ", " : "") + json_quoted(key) + ": ", events);
  open_.back().has_items = true;
  state_ = State::value;
}

void BraceCallParser::open(bool is_list, Events& events) {
  emit_arguments(is_list ? "[" : "{", events);
  open_.push_back({is_list});
  state_ = State::item;
}

void BraceCallParser::close_innermost(Events& events) {
  emit_arguments(open_.back().is_list ? "]" : "}", events);
  open_.pop_back();
}

ToolCallParser::Progress BraceCallParser::end_call(size_t consumed, Events& events) {
  while (!open_.empty()) close_innermost(events);
  emit_end(events);
  state_ = State::before;
  return {Status::done, consumed};
}

}  // namespace slip
