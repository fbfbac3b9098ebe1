// How a family of models marks thoughts and tool calls in what it writes. Which one it is shows in
// the tokenizer: the marks are tokens of their own.
#pragma once

#include <array>
#include <string_view>

#include "text/tokenizer.h"

namespace slip {

struct OutputFormat {
  std::string_view thoughts_open;
  std::string_view thoughts_close;
  // What the prompt or the model writes behind the opening tag: a line with the channel's name.
  std::string_view thoughts_title;
  std::string_view after_thoughts;  // what comes between thoughts and an answer
  // Thoughts may also begin in the middle of an answer. Otherwise an opening tag there is content.
  bool thoughts_anywhere;

  enum class Calls {
    tags,    // <function=NAME> <parameter=KEY> value </parameter> </function>
    braces,  // call:NAME{key:value, ...}
  };
  Calls calls;
  std::string_view call_open;
  std::string_view call_close;
  std::string_view bare_call;  // how a call without its opening tag begins; call_open: no such form
  std::string_view quote;      // around strings in calls; empty: none

  // For repositories that come without a template; empty: none.
  std::string_view fallback_template;

  // Tokens that hand over to the user or to a tool, whatever generation_config.json says.
  std::array<std::string_view, 2> turn_ends;
};

extern const OutputFormat kQwenOutput;   // Qwen3.5, and whatever is not known
extern const OutputFormat kGemmaOutput;  // Gemma 4

const OutputFormat& output_format_of(const Tokenizer& tokenizer);

}  // namespace slip
