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

}  // namespace slip
