// Where a model's reasoning ends. The prompt of a thinking model ends with <think>, so that its
// output begins inside.
#pragma once

#include <cstddef>
#include <string_view>

namespace slip {

struct ReasoningPiece {
  size_t length = 0;   // bytes of reasoning at the front of the text
  size_t skip = 0;     // bytes of a tag behind them that are not shown
  bool ended = false;  // what follows is content
};

// Takes the next piece off `text`. </think> ends reasoning, and so does <tool_call>, which is left
// for the tool-call parser: models call tools from inside their thoughts. A stray <think> is
// skipped. A tag that may still be incomplete is left unless `final`.
ReasoningPiece next_reasoning(std::string_view text, bool final);

// Whether a prompt ends inside the model's thoughts: the answer then begins with them.
bool ends_in_thoughts(std::string_view prompt);

}  // namespace slip
