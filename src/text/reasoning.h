// Where a model's reasoning begins and ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/output_format.h"

namespace slip {

struct ReasoningPiece {
  size_t length = 0;   // bytes of reasoning at the front of the text
  size_t skip = 0;     // bytes of a tag behind them that are not shown
  bool ended = false;  // what follows is content
};

// Takes the next piece off `text`. The closing tag ends reasoning, and so does the beginning of a
// tool call, which is left for its parser: models call tools from inside their thoughts. Where they
// have none (`calls_end_it`), they only write about them. A stray opening tag is skipped. A tag
// that may still be incomplete is left unless `final`.
ReasoningPiece next_reasoning(const OutputFormat& format, std::string_view text, bool final,
                              bool calls_end_it);

// Who wrote the opening tag of thoughts, and so what may stand in front of them.
enum class ThoughtsOpenedBy {
  model,   // the name of the channel, whatever it is
  prompt,  // the title that the prompt has already, once more
};
struct ThoughtsTitle {
  bool decided = false;
  size_t length = 0;  // bytes to leave out
};
ThoughtsTitle match_title(const OutputFormat& format, std::string_view text, ThoughtsOpenedBy by,
                          bool final);

// Whether an answer begins with the model's thoughts.
enum class Thoughts : uint8_t {
  none,
  begun,      // yes: the prompt has opened them
  may_begin,  // the model may open them itself
};

// Whether a prompt ends inside the model's thoughts: the answer then begins with them.
bool ends_in_thoughts(const OutputFormat& format, std::string_view prompt);

// The same for text that goes on behind the opening tag.
bool has_open_thoughts(const OutputFormat& format, std::string_view text);

}  // namespace slip
