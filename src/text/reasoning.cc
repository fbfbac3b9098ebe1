#include "text/reasoning.h"

#include "text/tool_calls_scan.h"

namespace slip {

ReasoningPiece next_reasoning(std::string_view text, bool final) {
  const Tags tags = {"</think>", "<think>", "<tool_call>"};
  const FoundTag found = find_first_tag(text, tags);
  if (found.tag.empty()) return {.length = final ? text.size() : undecided_from(text, tags)};
  if (found.tag == "<tool_call>") return {.length = found.at, .ended = true};
  return {.length = found.at, .skip = found.tag.size(), .ended = found.tag == "</think>"};
}

bool ends_in_thoughts(std::string_view prompt) {
  const size_t last = prompt.find_last_not_of(" \n\t");
  return last != std::string_view::npos && prompt.substr(0, last + 1).ends_with("<think>");
}

}  // namespace slip
