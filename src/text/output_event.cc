#include "text/output_event.h"

#include <utility>

namespace slip {

void add_event(std::vector<OutputEvent>& events, OutputEvent event) {
  const bool is_delta = event.kind == OutputEvent::Kind::reasoning ||
                        event.kind == OutputEvent::Kind::content ||
                        event.kind == OutputEvent::Kind::tool_call_arguments;
  if (is_delta && event.text.empty()) return;
  if (is_delta && !events.empty() && events.back().kind == event.kind) {
    events.back().text += event.text;
  } else {
    events.push_back(std::move(event));
  }
}

}  // namespace slip
