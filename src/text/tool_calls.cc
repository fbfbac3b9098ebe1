#include "text/tool_calls.h"

#include <utility>

#include "text/tool_calls_braces.h"
#include "text/tool_calls_scan.h"
#include "text/tool_calls_tags.h"

namespace slip {

std::string ToolCallParser::take_stray_text() {
  stray_text_.erase(stray_text_.size() - trailing_blanks(stray_text_));
  return std::exchange(stray_text_, "");
}

void ToolCallParser::emit_start(const std::string& function,
                                std::vector<OutputEvent>& events) const {
  add_event(events, {OutputEvent::Kind::tool_call_start, function, calls_});
}

void ToolCallParser::emit_arguments(std::string json, std::vector<OutputEvent>& events) const {
  add_event(events, {OutputEvent::Kind::tool_call_arguments, std::move(json), calls_});
}

void ToolCallParser::emit_end(std::vector<OutputEvent>& events) {
  add_event(events, {OutputEvent::Kind::tool_call_end, "", calls_++});
}

std::unique_ptr<ToolCallParser> make_tool_call_parser(const OutputFormat& format, JsonArray tools) {
  switch (format.calls) {
    case OutputFormat::Calls::tags: return std::make_unique<TagCallParser>(std::move(tools));
    case OutputFormat::Calls::braces: return std::make_unique<BraceCallParser>(format);
  }
  unreachable("OutputFormat::Calls");
}

}  // namespace slip
