#include "text/tool_calls_tags.h"

#include <algorithm>

#include "base/json_dump.h"
#include "text/tool_calls_scan.h"

namespace slip {
namespace {

constexpr std::string_view kCall = "<tool_call>";
constexpr std::string_view kEndCall = "</tool_call>";
constexpr std::string_view kFunction = "<function=";
constexpr std::string_view kEndFunction = "</function>";
constexpr std::string_view kParameter = "<parameter=";
constexpr std::string_view kEndParameter = "</parameter>";
constexpr std::string_view kEndThink = "</think>";

using Events = std::vector<OutputEvent>;

std::string_view after_blanks(std::string_view text) { return text.substr(leading_blanks(text)); }

// Whether a value ends where `text` begins with a tag, outside a string of JSON. Values may contain
// anything, also closing tags (a file about tool calls, say), so those of the function and the call
// count only if what follows fits.
Match ends_value(std::string_view text, std::string_view tag, bool final) {
  if (tag == kEndParameter) return Match::yes;
  if (tag == kParameter) return match_open_tag(text, kParameter, final).match;
  const std::string_view next = after_blanks(text.substr(tag.size()));
  if (tag == kCall) return match_open_tag(next, kFunction, final).match;
  if (next.empty()) return final ? Match::yes : Match::undecided;
  return starts_with_any(next, {kEndCall, kCall, kFunction}, final);
}

}  // namespace

ToolCallParser::Progress TagCallParser::advance(std::string_view text, bool final, Events& events) {
  switch (state_) {
    case State::before: return read_start(text, final, events);
    case State::body: return read_body(text, final, events);
    case State::value: return read_value(text, final, events);
    case State::after: return read_after(text, final);
  }
  unreachable("TagCallParser::State");
}

ToolCallParser::Progress TagCallParser::read_start(std::string_view text, bool final,
                                                   Events& events) {
  const bool is_bare = !text.starts_with(kCall);
  const std::string_view opening = is_bare ? text : after_blanks(text.substr(kCall.size()));
  const OpenTag function = match_open_tag(opening, kFunction, final);
  if (function.match == Match::undecided) return {Status::undecided};
  // Without its tag, a call of a tool that does not exist is more likely something written about.
  const bool is_known = !is_bare || tools_.empty() || has_tool(tools_, function.name);
  if (function.match == Match::no || !is_known) return {Status::not_a_call};
  function_ = function.name;
  has_parameters_ = false;
  state_ = State::body;
  emit_start(function_, events);
  return {Status::in_call, text.size() - opening.size() + function.length};
}

ToolCallParser::Progress TagCallParser::read_body(std::string_view text, bool final,
                                                  Events& events) {
  const size_t blanks = leading_blanks(text);
  const std::string_view rest = text.substr(blanks);
  if (!stray_text_.empty()) stray_text_ += text.substr(0, blanks);
  if (final && is_cut_off()) {
    emit_end(events);
    return {Status::done, text.size()};
  }
  if (rest.empty()) {
    if (!final) return {Status::undecided, blanks};
    end_call(events);
    state_ = State::before;
    return {Status::done, blanks};
  }
  const Match tag = starts_with_any(
      rest, {kParameter, kEndParameter, kFunction, kEndFunction, kCall, kEndCall, kEndThink},
      final);
  if (tag == Match::undecided) return {Status::undecided, blanks};

  const OpenTag parameter = match_open_tag(rest, kParameter, final);
  if (parameter.match == Match::undecided) return {Status::undecided, blanks};
  if (parameter.match == Match::yes) {
    begin_parameter(parameter.name, events);
    return {Status::in_call, blanks + parameter.length};
  }
  if (rest.starts_with(kEndFunction)) {
    end_call(events);
    state_ = State::after;
    return {Status::in_call, blanks + kEndFunction.size()};
  }
  if (rest.starts_with(kEndCall)) {
    end_call(events);
    state_ = State::before;
    return {Status::done, blanks + kEndCall.size()};
  }
  const OpenTag next = match_open_tag(rest, kFunction, final);
  if (next.match == Match::undecided) return {Status::undecided, blanks};
  if (next.match == Match::yes || rest.starts_with(kCall)) {
    end_call(events);
    state_ = State::before;
    return {Status::done, blanks};
  }
  for (const std::string_view dropped : {kEndParameter, kEndThink})
    if (rest.starts_with(dropped)) return {Status::in_call, blanks + dropped.size()};
  const size_t stray = std::min(rest.find('<', 1), rest.size());
  stray_text_ += rest.substr(0, stray);
  return {Status::in_call, blanks + stray};
}

ToolCallParser::Progress TagCallParser::read_value(std::string_view text, bool final,
                                                   Events& events) {
  if (!value_begun_) {
    if (text.empty() && !final) return {Status::undecided};
    value_begun_ = true;
    if (text.starts_with('\n')) return {Status::in_call, 1};
  }
  const Tags ends_of_values = {kEndParameter, kParameter, kEndFunction, kEndCall, kCall};
  JsonStrings strings = strings_;
  size_t from = 0;
  while (true) {
    FoundTag found = find_first_tag(text.substr(from), ends_of_values);
    found.at += from;
    strings.read(text.substr(from, found.at - from));
    const bool may_end = !found.tag.empty() && !(types_.may_be_json() && strings.inside());
    const Match ends = may_end ? ends_value(text.substr(found.at), found.tag, final) : Match::no;
    if (!found.tag.empty() && ends == Match::no) {
      from = found.at + 1;
      strings.read("<");
      continue;
    }
    if (ends == Match::yes || (final && !is_cut_off())) {
      // One line break before the closing tag belongs to the tag.
      std::string_view value = text.substr(0, found.at);
      if (value.ends_with('\n')) value.remove_suffix(1);
      add_value_text(value, events);
      end_parameter(events);
      return {Status::in_call, found.at + (found.tag == kEndParameter ? found.tag.size() : 0)};
    }
    size_t safe = found.tag.empty() ? undecided_from(text, ends_of_values) : found.at;
    if (safe > 0 && text[safe - 1] == '\n') --safe;
    add_value_text(text.substr(0, safe), events);
    if (!final) return {Status::undecided, safe};
    emit_end(events);
    return {Status::done, text.size()};
  }
}

ToolCallParser::Progress TagCallParser::read_after(std::string_view text, bool final) {
  const size_t blanks = leading_blanks(text);
  const std::string_view rest = text.substr(blanks);
  const Match match = starts_with_any(rest, {kEndCall}, final);
  if (match == Match::undecided) return {Status::undecided, blanks};
  state_ = State::before;
  return {Status::done, blanks + (match == Match::yes ? kEndCall.size() : 0)};
}

void TagCallParser::begin_parameter(std::string_view name, Events& events) {
  types_ = find_parameter_types(tools_, function_, name);
  emit_arguments(
      (has_parameters_ ? ", " : "{") + json_quoted(name) + (types_.only_text() ? ": \"" : ": "),
      events);
  has_parameters_ = true;
  value_.clear();
  strings_ = {};
  value_begun_ = false;
  state_ = State::value;
}

void TagCallParser::add_value_text(std::string_view text, Events& events) {
  if (!types_.only_text()) {
    value_ += text;
    strings_.read(text);
    return;
  }
  std::string json;
  append_json_escaped(json, text);
  emit_arguments(std::move(json), events);
}

void TagCallParser::end_parameter(Events& events) {
  emit_arguments(types_.only_text() ? "\"" : convert_parameter(value_, types_), events);
  state_ = State::body;
}

void TagCallParser::end_call(Events& events) {
  emit_arguments(has_parameters_ ? "}" : "{}", events);
  emit_end(events);
}

}  // namespace slip
