#include "text/output_parser.h"

#include <algorithm>

#include "text/tool_calls_scan.h"

namespace slip {

OutputParser::OutputParser(const OutputFormat& format, bool starts_in_reasoning,
                           const JsonArray& tools, Calls calls)
    : format_(&format), meaning_(calls), calls_(make_tool_call_parser(format, tools)) {
  if (starts_in_reasoning) begin_reasoning(ThoughtsOpenedBy::prompt);
}

std::vector<OutputEvent> OutputParser::feed(std::string_view new_text) {
  pending_.erase(0, at_);
  at_ = 0;
  pending_ += new_text;
  return run(false);
}

std::vector<OutputEvent> OutputParser::finish() {
  std::vector<OutputEvent> events = run(true);
  // White space alone is no answer when there were thoughts or calls.
  const bool worth_keeping = has_content_ || (!had_reasoning_ && calls_->calls() == 0);
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
  const size_t blanks = leading_blanks(rest());
  const Match match = starts_with_any(rest().substr(blanks), {format_->thoughts_open}, final);
  if (match == Match::undecided) return false;
  mode_ = Mode::content;
  if (match == Match::yes) {
    at_ += blanks + format_->thoughts_open.size();
    begin_reasoning(ThoughtsOpenedBy::model);
  }
  return true;
}

void OutputParser::begin_reasoning(ThoughtsOpenedBy by) {
  mode_ = Mode::reasoning;
  title_of_ = by;
}

bool OutputParser::run_reasoning(bool final, std::vector<OutputEvent>& events) {
  had_reasoning_ = true;
  if (title_of_) {
    const ThoughtsTitle title = match_title(*format_, rest(), *title_of_, final);
    if (!title.decided) return false;
    title_of_.reset();
    at_ += title.length;
  }
  const ReasoningPiece piece =
      next_reasoning(*format_, rest(), final, meaning_ != Calls::as_content);
  add_event(events, {OutputEvent::Kind::reasoning, std::string(rest().substr(0, piece.length))});
  at_ += piece.length + piece.skip;
  if (piece.ended && piece.skip == 0) {
    begin_call();
  } else if (piece.ended) {
    mode_ = Mode::content;
    trim_ = Trim::newlines;
  } else if (piece.skip > 0) {
    title_of_ = ThoughtsOpenedBy::model;
  }
  return piece.ended || piece.skip > 0;
}

void OutputParser::begin_call() {
  before_call_ = mode_;
  mode_ = Mode::tool_call;
}

bool OutputParser::run_content(bool final, std::vector<OutputEvent>& events) {
  const Tags all = {format_->thoughts_close, format_->thoughts_open, format_->call_open,
                    format_->bare_call, format_->call_close};
  const Tags no_calls = {format_->thoughts_close, format_->thoughts_open};
  const std::string_view words = rest().substr(leading_blanks(rest()));
  if (meaning_ == Calls::first && !words.empty() &&
      starts_with_any(words, {format_->call_open}, final) == Match::no)
    meaning_ = Calls::as_content;
  const Tags tags = meaning_ == Calls::as_content ? no_calls : all;
  const FoundTag found = find_first_tag(rest(), tags);
  const bool none = found.tag.empty();
  const size_t length = none && !final ? undecided_from(rest(), tags) : found.at;
  emit_content(rest().substr(0, length), events);
  at_ += length;
  if (none) return false;
  if (found.tag == format_->call_open || found.tag == format_->bare_call) {
    begin_call();
    return true;
  }
  at_ += found.tag.size();
  if (found.tag == format_->thoughts_open && format_->thoughts_anywhere) {
    begin_reasoning(ThoughtsOpenedBy::model);
    return true;
  }
  // A second end of thoughts is never meant to be seen; the end of a call only if none came before.
  const bool is_seen = found.tag == format_->thoughts_open ||
                       (found.tag == format_->call_close && calls_->calls() == 0);
  if (is_seen) emit_content(found.tag, events);
  return true;
}

bool OutputParser::run_tool_call(bool final, std::vector<OutputEvent>& events) {
  std::vector<OutputEvent> call_events;
  const ToolCallParser::Progress progress = calls_->advance(rest(), final, call_events);
  if (!call_events.empty()) held_blanks_.clear();
  for (OutputEvent& event : call_events) add_event(events, std::move(event));
  at_ += progress.consumed;
  switch (progress.status) {
    case ToolCallParser::Status::undecided: return false;
    case ToolCallParser::Status::in_call: return true;
    case ToolCallParser::Status::not_a_call: {
      // The tag is text like what came before it, and what follows may be anything.
      const std::string_view tag =
          rest().starts_with(format_->call_open) ? format_->call_open : format_->bare_call;
      if (before_call_ == Mode::reasoning)
        add_event(events, {OutputEvent::Kind::reasoning, std::string(tag)});
      else
        emit_content(tag, events);
      at_ += tag.size();
      mode_ = before_call_;
      return true;
    }
    case ToolCallParser::Status::done:
      mode_ = Mode::content;
      trim_ = Trim::blanks;
      emit_content(calls_->take_stray_text(), events);
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
