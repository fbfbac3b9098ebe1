#include "text/output_parser.h"

#include <algorithm>

#include "text/reasoning.h"
#include "text/tool_calls_scan.h"

namespace slip {

OutputParser::OutputParser(bool starts_in_reasoning, const JsonArray& tools, Calls calls)
    : mode_(starts_in_reasoning ? Mode::reasoning : Mode::start), meaning_(calls), calls_(tools) {}

std::vector<OutputEvent> OutputParser::feed(std::string_view new_text) {
  pending_.erase(0, at_);
  at_ = 0;
  pending_ += new_text;
  return run(false);
}

std::vector<OutputEvent> OutputParser::finish() {
  std::vector<OutputEvent> events = run(true);
  // White space alone is no answer when there were thoughts or calls.
  const bool worth_keeping = has_content_ || (!had_reasoning_ && calls_.calls() == 0);
  if (worth_keeping)
    add_event(events, {OutputEvent::Kind::content, std::exchange(held_blanks_, "")});
  return events;
}

std::vector<OutputEvent> OutputParser::run(bool final) {
  std::vector<OutputEvent> events;
  bool moving = true;
  while (moving) {
    switch (mode_) {
      case Mode::start: moving = run_start(final); break;
      case Mode::reasoning: moving = run_reasoning(final, events); break;
      case Mode::content: moving = run_content(final, events); break;
      case Mode::tool_call: moving = run_tool_call(final, events); break;
    }
  }
  return events;
}

// Some models open their thoughts themselves, as the first thing they write.
bool OutputParser::run_start(bool final) {
  static constexpr std::string_view kThink = "<think>";
  const size_t blanks = leading_blanks(rest());
  const Match match = starts_with_any(rest().substr(blanks), {kThink}, final);
  if (match == Match::undecided) return false;
  if (match == Match::yes) at_ += blanks + kThink.size();
  mode_ = match == Match::yes ? Mode::reasoning : Mode::content;
  return true;
}

bool OutputParser::run_reasoning(bool final, std::vector<OutputEvent>& events) {
  const ReasoningPiece piece = next_reasoning(rest(), final);
  had_reasoning_ = true;
  add_event(events, {OutputEvent::Kind::reasoning, std::string(rest().substr(0, piece.length))});
  at_ += piece.length + piece.skip;
  if (piece.ended) {
    mode_ = Mode::content;
    trim_ = Trim::newlines;
  }
  return piece.ended || piece.skip > 0;
}

bool OutputParser::run_content(bool final, std::vector<OutputEvent>& events) {
  static const Tags kAll = {"</think>", "<tool_call>", "<function=", "</tool_call>"};
  static const Tags kNoCalls = {"</think>"};
  const Tags tags = meaning_ == Calls::parsed ? kAll : kNoCalls;
  const FoundTag found = find_first_tag(rest(), tags);
  const bool none = found.tag.empty();
  const size_t length = none && !final ? undecided_from(rest(), tags) : found.at;
  emit_content(rest().substr(0, length), events);
  at_ += length;
  if (none) return false;
  if (found.tag == "<tool_call>" || found.tag == "<function=") {
    mode_ = Mode::tool_call;
    return true;
  }
  // A second </think> is never meant to be seen; a </tool_call> only if no call came before it.
  if (found.tag == "</tool_call>" && calls_.calls() == 0) emit_content(found.tag, events);
  at_ += found.tag.size();
  return true;
}

bool OutputParser::run_tool_call(bool final, std::vector<OutputEvent>& events) {
  std::vector<OutputEvent> call_events;
  const ToolCallParser::Progress progress = calls_.advance(rest(), final, call_events);
  if (!call_events.empty()) held_blanks_.clear();
  for (OutputEvent& event : call_events) add_event(events, std::move(event));
  at_ += progress.consumed;
  switch (progress.status) {
    case ToolCallParser::Status::undecided: return false;
    case ToolCallParser::Status::in_call: return true;
    case ToolCallParser::Status::not_a_call: {
      // The text is kept: its tag is content, and what follows may be anything.
      const std::string_view tag = rest().starts_with("<tool_call>") ? "<tool_call>" : "<function=";
      emit_content(tag, events);
      at_ += tag.size();
      mode_ = Mode::content;
      return true;
    }
    case ToolCallParser::Status::done:
      mode_ = Mode::content;
      trim_ = Trim::blanks;
      emit_content(calls_.take_stray_text(), events);
      return true;
  }
  unreachable("ToolCallParser::Status");
}

void OutputParser::emit_content(std::string_view text, std::vector<OutputEvent>& events) {
  if (trim_ == Trim::newlines)
    text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
  if (trim_ == Trim::blanks) text.remove_prefix(leading_blanks(text));
  if (text.empty()) return;
  trim_ = Trim::nothing;
  const size_t blanks = trailing_blanks(text);
  if (blanks < text.size()) {
    has_content_ = true;
    add_event(events,
              {OutputEvent::Kind::content, std::exchange(held_blanks_, "") +
                                               std::string(text.substr(0, text.size() - blanks))});
  }
  held_blanks_ += text.substr(text.size() - blanks);
}

}  // namespace slip
